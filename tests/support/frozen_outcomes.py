"""What the engine decides for random conversations, in words that two versions can compare.

`python -m tests.support.frozen_outcomes oneclaw 17` prints the decision about one conversation, so
that two versions can be compared by `diff`. `… write` freezes the decisions of this version.

The conversations come from `random.Random`, which gives the same numbers on every version of
Python; Hypothesis does not.
"""

import json
import random
import sys
from dataclasses import asdict, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from compaction.compactor import AskedPolicy
from compaction.core.budget import Budget, plan
from compaction.core.estimate import LastUsage, count_entry_tokens, estimate_summary, measure
from compaction.core.pipeline import run
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.core.summary import SummaryFailed, SummaryOutcome, SummaryTask
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry
from compaction.core.trimming import drop_oldest_to_fit, shorten_results_to_fit
from compaction.systems.neurolink.sliding import slide_to_fit

for _name in ("neurolink", "lota", "wolffish", "baseagent"):
    import_module(f"compaction.systems.{_name}.preset")  # they add their presets

COUNT = 2_000
FOLDER = Path(__file__).resolve().parents[1] / "data/frozen_outcomes"
DIGITS = 8  # of each digest: one difference in four billion would not be seen
IN_A_LINE = 10
WORDS = [
    *("the", "garden", "in", "Lyon", "costs", "4,200", "euros", "because", "light", "is", "free."),
    *(
        "Das",
        "Übermaß",
        "größer",
        "花園",
        "里昂",
        "العربية",
        "мир",
        "naïve",
        "🌱",
        "x_1",
        "\n",
        "\n\n",
    ),
    *("/srv/app/main.py:42", "https://example.org/a?b=1", "--flag", "[1, 2]", "# Title\n"),
]
TEXT_SIZES = [0, 1, 8, 40, 120, 400, 1_500]
TOOLS = ["read_file", "bash", "skill", "todo_write", "web_search"]
PATHS = ["a.py", "./a.py", "src/b.py", "src/c.py"]
# Numbers of a policy that are too large for conversations of this size.
SMALL_NUMBERS = {"prune": {"protect_tokens": 500, "minimum_savings": 300}}


def build_text(source: random.Random) -> str:
    """Return prose, code in a fence, JSON or a log, of up to some thousand characters."""
    words = source.choices(WORDS, k=source.choice(TEXT_SIZES))
    form = source.randrange(8)
    if form == 0:
        return "Before.\n```python\n" + "\n".join(words) + "\n```\nAfter."
    if form == 1:
        return json.dumps({"lines": words}, ensure_ascii=False)
    if form == 2:
        return "\n".join(
            f"2026-09-01T08:00:{n % 60:02} INFO {word}" for n, word in enumerate(words)
        )
    return " ".join(words)


def build_call(source: random.Random, call_id: str) -> TranscriptCall:
    """Return a call of a tool; one in ten has arguments that are no JSON."""
    arguments: dict[str, Any] = {"path": source.choice(PATHS)}
    if source.randrange(3) == 0:
        arguments |= {"offset": source.randrange(3), "text": build_text(source)}
    text = "{" if source.randrange(10) == 0 else json.dumps(arguments, ensure_ascii=False)
    return TranscriptCall(id=call_id, name=source.choice(TOOLS), arguments=text)


def build_entries(source: random.Random) -> tuple[TranscriptEntry, ...]:
    """Return up to 40 messages: questions, answers, calls with results, some of them missing."""
    entries: list[TranscriptEntry] = []
    open_calls: list[TranscriptCall] = []
    seq = source.choice([0, 0, 7])
    for _ in range(source.choice([0, 1, 2, 5, 12, 25, 40])):
        seq += source.choice([1, 1, 1, 2, 3])
        role = source.choice(["user", "assistant", "assistant"])
        if open_calls and source.randrange(10):
            role = "tool"
        entry = TranscriptEntry(
            seq=seq, role=role, content=build_text(source), pinned=source.randrange(12) == 0
        )
        if role == "assistant" and source.randrange(2):
            # Names of calls are used again, as some providers do.
            ids = source.sample(["call_0", "call_1", "call_2", "toolu_9"], source.randint(1, 3))
            open_calls = [build_call(source, call_id) for call_id in ids]
            entry = replace(entry, calls=tuple(open_calls))
        elif role == "tool":
            call = open_calls.pop(source.randrange(len(open_calls)))
            entry = replace(
                entry, call_id=call.id, tool_name=call.name, is_error=source.randrange(5) == 0
            )
        if source.randrange(8) == 0:
            entry = replace(entry, original=build_text(source) + build_text(source))
        elif source.randrange(6) == 0:
            entry = replace(entry, images=source.randint(1, 2))
        entries.append(entry)
    return tuple(entries)


def build_transcript(source: random.Random) -> Transcript:
    """Return a conversation, with an earlier summary in half of all cases."""
    entries = build_entries(source)
    summary = build_text(source) or None if source.randrange(2) else None
    return Transcript(
        entries=entries,
        summary=summary,
        boundary_seq=entries[0].seq if summary and entries else None,
        overhead_tokens=source.choice([0, 0, 50, 900]),
        system=source.choice(["", "You are a gardener."]),
        tools=source.choice(["", '[{"name": "bash"}]']),
        family=source.choice(["", "claude", "gpt-5", "llama"]),
    )


def to_plain(value: Any) -> dict[str, Any]:
    """Return an object's values without the empty ones, so that a new field changes no mark."""
    return asdict(value, dict_factory=lambda items: {name: each for name, each in items if each})


def store_output(text: str, policy: Policy) -> dict[str, Any]:
    """Return what is stored of a tool's output, as the numbers that were frozen have it."""
    output = AskedPolicy("", policy).truncate_output(text)
    values = {"content": output.content, "original_chars": output.original_chars}
    return {name: value for name, value in values.items() if value}


def decide(preset: str, seed: int) -> dict[str, Any]:
    """Return everything that is decided about a conversation under a preset, as plain data."""
    source = random.Random(seed)
    transcript = build_transcript(source)
    policy = Policy.parse(SMALL_NUMBERS, PRESETS[preset])
    usage = LastUsage(tokens=source.randint(1, 20_000), after_seq=source.randint(0, 40))
    usage = replace(usage, input=source.choice([0, usage.tokens // 2]))
    measurement = measure(transcript, policy, usage if source.randrange(2) else None)
    window = source.choice([None, measurement.tokens, *(2_000, 4_096, 8_192, 32_000)])
    budget = plan(
        policy,
        window,
        max_input=source.choice([None, None, 6_000]),
        output_reserve=source.choice([None, 1_000]),
        max_tokens=source.choice([None, 500]),
        family=transcript.family,
    )
    if budget is not None and source.randrange(6) == 0:
        budget = budget.reduce_for_recovery()
    tasks: list[SummaryTask] = []
    answer = source.choice(["", "Brief.", build_text(source) or "Brief."])

    def summarize(task: SummaryTask) -> SummaryOutcome:
        tasks.append(task)
        if not answer:
            raise SummaryFailed("The model is away.")
        return SummaryOutcome(text=answer)

    outcome = run(
        transcript,
        policy,
        budget,
        measurement,
        summarize,
        instructions=source.choice(["", "Keep the prices."]),
        up_to_seq=source.choice([None, None, None, 12]),
        force=source.randrange(3) == 0,
        growth_tokens=source.choice([0, 0, 120]),
    )
    return {
        "measurement": to_plain(measurement),
        "budget": budget and to_plain(budget),
        "tasks": [to_plain(task) for task in tasks],
        "outcome": to_plain(outcome),
        "fitted": budget and fit(transcript, policy, budget, source),
        "stored": [store_output(build_text(source) * 90, policy)],
    }


def fit(
    transcript: Transcript, policy: Policy, budget: Budget, source: random.Random
) -> dict[str, Any]:
    """Return what each way to make a request fit leaves of a conversation."""
    entries = count_entry_tokens(transcript, policy).entries
    limits: dict[str, Any] = {
        "limit_tokens": source.choice([budget.request_limit, budget.request_limit // 3]),
        "overhead_tokens": estimate_summary(transcript.summary, policy),
        "token_ratio": source.choice([1.0, 1.3]),
    }
    shorter = shorten_results_to_fit(entries, **limits)
    return {
        "newest": [entry.seq for entry in drop_oldest_to_fit(entries, **limits)],
        "shorter": [(entry.seq, entry.tokens, entry.content) for entry in shorter],
        "slid": [
            entry.seq for entry in slide_to_fit(entries, first_count=2, fraction=0.5, **limits)
        ],
    }


def describe(preset: str, seed: int) -> str:
    """Return a decision as text, one value a line, the same for the same decision."""
    return json.dumps(
        decide(preset, seed), indent=1, sort_keys=True, ensure_ascii=False, default=sorted
    )


def digest(preset: str, seed: int) -> str:
    """Return a short mark of a decision."""
    return sha256(describe(preset, seed).encode()).hexdigest()[:DIGITS]


def write_all() -> None:
    """Freeze what this version decides."""
    FOLDER.mkdir(exist_ok=True)
    for preset in PRESETS:
        marks = [digest(preset, seed) for seed in range(COUNT)]
        lines = (" ".join(marks[n : n + IN_A_LINE]) for n in range(0, COUNT, IN_A_LINE))
        (FOLDER / f"{preset}.txt").write_text("\n".join(lines) + "\n")


def main(arguments: list[str]) -> None:
    """Print a decision, or freeze all of them."""
    if arguments == ["write"]:
        write_all()
    else:
        print(describe(arguments[0], int(arguments[1])))


if __name__ == "__main__":
    main(sys.argv[1:])

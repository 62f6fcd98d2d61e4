"""What needs no database: cutting a tool result, and compacting ten thousand messages under each preset."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from chatcore.models import Message
from compaction.core.budget import plan
from compaction.core.estimate import measure
from compaction.core.features import estimate_by_features
from compaction.core.pipeline import run
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.core.stages.base import SummaryOutcome
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry
from compaction.core.trimming import drop_oldest_to_fit
from tests.benchmarks.timing import Row, median_ms

MEGABYTE = 1_000_000
CANDIDATES = 10_000


def rows() -> Iterator[Row]:
    """The save hook on a megabyte; the pipeline and the fallback on ten thousand messages."""
    for name, text in (("ASCII", "x" * MEGABYTE), ("Chinese", "字" * (MEGABYTE // 3))):
        yield Row(
            name=f"cut a tool result of 1 MB, {name}",
            value=median_ms(partial(_store, text), times=50),
            limit=10,
        )
    code = Path(__file__).read_text()
    counted = median_ms(
        partial(estimate_by_features, (code * (MEGABYTE // len(code) + 1))[:MEGABYTE]), times=5
    )
    yield Row(name="count a text of 1 MB by features", value=counted, limit=1_000)
    transcript = _transcript()
    uncounted = replace(
        transcript, entries=tuple(replace(entry, tokens=0) for entry in transcript.entries)
    )
    for name, policy in PRESETS.items():
        whole = median_ms(partial(_compacted, policy, uncounted), times=5, warm_up=1)
        yield Row(
            name=f"compact {CANDIDATES:,} messages, {name}",
            value=whole,
            limit=1_000,
            note="counted first; instant summarizer",
        )
    dropped = median_ms(
        lambda: drop_oldest_to_fit(transcript.entries, limit_tokens=170_000), times=9
    )
    yield Row(name=f"trim {CANDIDATES:,} messages", value=dropped, limit=1_000)


def _store(text: str) -> None:
    Message(role="tool", content=text).prepare_to_store()


def _compacted(policy: Policy, transcript: Transcript) -> None:
    """Counted and compacted in a window that takes half of it by the policy's own count, so that every stage has work."""
    measured = measure(transcript, policy)
    run(
        transcript,
        policy,
        plan(policy, measured.tokens // 2),
        measured,
        lambda task: SummaryOutcome(text="Brief."),
    )


def _transcript() -> Transcript:
    """Turns of four: a question, two parallel calls, their results in the other order."""
    made = []
    for seq in range(1, CANDIDATES, 4):
        calls = tuple(
            TranscriptCall(id=f"call_{place}", name="read", arguments='{"path": "a"}')
            for place in range(2)
        )
        made.append(TranscriptEntry(seq=seq, role="user", content="x" * 400, tokens=100))
        made.append(
            TranscriptEntry(
                seq=seq + 1, role="assistant", content="x" * 400, tokens=107, calls=calls
            )
        )
        made += [
            TranscriptEntry(
                seq=seq + 2 + n, role="tool", content="x" * 400, tokens=100, call_id=f"call_{1 - n}"
            )
            for n in range(2)
        ]
    return Transcript(entries=tuple(made), summary="Before that. " * 100, overhead_tokens=500)

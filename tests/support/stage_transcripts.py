"""Transcripts for the tests of the stages, and a pass that checks every invariant."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from compaction.core.budget import plan
from compaction.core.estimate import Measurement, measure
from compaction.core.invariants import find_violations
from compaction.core.outcome import Outcome
from compaction.core.pipeline import run
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW, PRESETS
from compaction.core.summary import SummaryFailed, SummaryOutcome, SummaryTask
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry

WINDOW = 10_000
NOTHING: Mapping[str, object] = MappingProxyType({})


class Summarizer:
    """A summarizer that returns a fixed text or fails, and records its tasks."""

    def __init__(
        self,
        text: str = "They spoke.",
        *,
        fails: str = "",
        proposals: Mapping[str, object] = NOTHING,
    ) -> None:
        self.text, self.fails = text, fails
        self.proposals = proposals
        self.tasks: list[SummaryTask] = []

    def __call__(self, task: SummaryTask) -> SummaryOutcome:
        self.tasks.append(task)
        if self.fails:
            raise SummaryFailed(self.fails)
        return SummaryOutcome(text=self.text, proposals=self.proposals)


def build_policy(*stages: str, base: str = "oneclaw", **overrides: Any) -> Policy:
    """Build a preset with other stages and knobs."""
    return Policy.parse(overrides | ({"stages": list(stages)} if stages else {}), PRESETS[base])


def user(seq: int, content: str = "A question.", **fields: Any) -> TranscriptEntry:
    return TranscriptEntry(seq=seq, role="user", content=content, **fields)


def answer(
    seq: int, content: str = "An answer.", *, calls: str = "", **fields: Any
) -> TranscriptEntry:
    """Build an assistant's message. Each letter of `calls` is the id of a call."""
    return TranscriptEntry(
        seq=seq,
        role="assistant",
        content=content,
        calls=tuple(TranscriptCall(id=each, name="tool") for each in calls),
        **fields,
    )


def result(
    seq: int, call_id: str, content: str = "A result.", *, tool: str = "tool", **fields: Any
) -> TranscriptEntry:
    return TranscriptEntry(
        seq=seq, role="tool", content=content, call_id=call_id, tool_name=tool, **fields
    )


def make_tool_exchange(
    seq: int, arguments: str, content: str, *, tool: str = "read_file", **fields: Any
) -> tuple[TranscriptEntry, TranscriptEntry]:
    """Build an answer that calls one tool, and the result of the call."""
    call = TranscriptCall(id=f"read_{seq}", name=tool, arguments=arguments)
    return TranscriptEntry(seq=seq, role="assistant", calls=(call,)), result(
        seq + 1, call.id, content, tool=tool, **fields
    )


def talk(messages: int, characters: int = 800, first: int = 1) -> tuple[TranscriptEntry, ...]:
    """Build questions and answers in turn, 200 tokens each under oneclaw."""
    return tuple(
        (user if seq % 2 else answer)(seq, f"{seq} ".ljust(characters, "x"))
        for seq in range(first, first + messages)
    )


def compact(
    entries: tuple[TranscriptEntry, ...] | Transcript,
    with_policy: Policy = ONECLAW,
    summarizer: Summarizer | None = None,
    *,
    window: int = WINDOW,
    measurement: Measurement | None = None,
    recovering: bool = False,
    **options: Any,
) -> Outcome:
    """Run one pass and check that its outcome keeps every invariant."""
    transcript = entries if isinstance(entries, Transcript) else Transcript(entries=entries)
    budget = plan(with_policy, window)
    if recovering and budget:
        budget = budget.reduce_for_recovery()
    outcome = run(
        transcript,
        with_policy,
        budget,
        measurement or measure(transcript, with_policy),
        summarizer or Summarizer(),
        **options,
    )
    assert find_violations(transcript, outcome) == []
    return outcome


def apply_outcome(transcript: Transcript, outcome: Outcome) -> Transcript:
    """Return the transcript that the host loads after the outcome was applied."""
    if not outcome.is_applied:
        return transcript
    return Transcript(
        entries=outcome.entries,
        summary=outcome.summary,
        overhead_tokens=transcript.overhead_tokens,
        boundary_seq=outcome.boundary_seq,
        summarized_up_to=outcome.summarized_up_to,
        untold_seqs=frozenset(outcome.untold_seqs),
        marker=outcome.marker,
    )

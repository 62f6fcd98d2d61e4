"""Hundreds of rounds under each preset: every pass holds its invariants and makes enough room."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, cycle

import pytest

from compaction.core.budget import plan
from compaction.core.estimate import measure
from compaction.core.invariants import find_violations
from compaction.core.outcome import Outcome
from compaction.core.pipeline import run
from compaction.core.presets import PRESETS
from compaction.core.summary import SummaryOutcome, SummaryTask
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry

WINDOW, RESERVE, ROUNDS = 50_000, 8_000, 300
SIZES = (400, 4_000, 12_000, 400, 400, 12_000, 4_000)


def one_round(seq: int, size: int) -> tuple[TranscriptEntry, TranscriptEntry]:
    """A call and its result of so many characters."""
    calls = (TranscriptCall(id="call_0", name="fetch", arguments='{"path": "a"}'),)
    return TranscriptEntry(seq=seq, role="assistant", calls=calls), TranscriptEntry(
        seq=seq + 1, role="tool", call_id="call_0", content="r" * size
    )


def one_long_turn(first: int) -> Iterator[tuple[TranscriptEntry, ...]]:
    """Rounds of one call each, whose results differ in size."""
    for seq, size in zip(count(first, 2), cycle(SIZES)):
        yield one_round(seq, size)


def a_talk(first: int) -> Iterator[tuple[TranscriptEntry, ...]]:
    """Answers and questions by turns, now and then with a picture."""
    sizes = cycle((300, 2_000, 50, 3_000, 700))
    for seq in count(first, 2):
        yield (
            TranscriptEntry(seq=seq, role="assistant", content="a" * next(sizes)),
            TranscriptEntry(
                seq=seq + 1, role="user", content="u" * next(sizes), images=seq % 20 == 2
            ),
        )


def many_turns(first: int) -> Iterator[tuple[TranscriptEntry, ...]]:
    """Ten rounds of tool calls, then the next question; some of them are pinned."""
    for round_, seq in enumerate(count(first, 2)):
        if round_ % 11 == 10:
            pinned = round_ % 66 == 65
            yield (
                TranscriptEntry(seq=seq, role="assistant", content="Done."),
                TranscriptEntry(seq=seq + 1, role="user", content="next " * 50, pinned=pinned),
            )
        else:
            yield one_round(seq, SIZES[round_ % len(SIZES)])


@pytest.mark.parametrize(
    "kind", [one_long_turn, a_talk, many_turns], ids=lambda kind: kind.__name__
)
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_room_is_made_again_and_again(
    preset: str, kind: Callable[[int], Iterator[tuple[TranscriptEntry, ...]]]
) -> None:
    policy = PRESETS[preset]
    budget = plan(policy, WINDOW, output_reserve=RESERVE)
    assert budget is not None
    transcript = Transcript(
        entries=(TranscriptEntry(seq=1, role="user", content="Do it all."),), overhead_tokens=3_000
    )
    rounds, passes = kind(2), 0
    for _ in range(ROUNDS):
        transcript = replace(transcript, entries=(*transcript.entries, *next(rounds)))
        measurement = measure(transcript, policy)
        if not budget.is_over(measurement.tokens):
            continue
        outcome = run(
            transcript, policy, budget, measurement, lambda task: SummaryOutcome(text="s" * 2_000)
        )
        assert outcome.is_applied, outcome.reason
        assert find_violations(transcript, outcome) == []
        assert not budget.is_over(outcome.tokens_after)
        transcript = told_by(transcript, outcome)
        passes += 1
    assert 0 < passes <= ROUNDS / 3


def told_by(before: Transcript, outcome: Outcome) -> Transcript:
    """The context as the host would load it after installing the outcome."""
    return replace(
        before,
        entries=outcome.entries,
        summary=outcome.summary,
        boundary_seq=outcome.boundary_seq,
        summarized_up_to=outcome.summarized_up_to,
        marker=outcome.marker,
    )


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_no_message_leaves_without_being_told_of(preset: str) -> None:
    """A summarizer has read all that is gone, as a message or in an earlier summary."""
    policy, summarized_seqs = PRESETS[preset], set[int]()
    budget = plan(policy, WINDOW, output_reserve=RESERVE)
    assert budget is not None

    def summarize(task: SummaryTask) -> SummaryOutcome:
        summarized_seqs.update(entry.seq for entry in task.entries)
        return SummaryOutcome(text="Brief.")

    transcript, rounds = (
        Transcript(entries=(TranscriptEntry(seq=1, role="user", content="Do it all."),)),
        many_turns(2),
    )
    for _ in range(ROUNDS):
        transcript = replace(transcript, entries=(*transcript.entries, *next(rounds)))
        measurement = measure(transcript, policy)
        outcome = run(transcript, policy, budget, measurement, summarize)
        transcript = told_by(transcript, outcome) if outcome.is_applied else transcript
    sent = {entry.seq for entry in transcript.entries}
    assert set(range(1, transcript.entries[-1].seq + 1)) - sent <= summarized_seqs

"""Properties of a pass over random conversations, under every preset."""

import copy
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.budget import plan
from compaction.core.estimate import LastUsage, count_entry_tokens, measure
from compaction.core.invariants import find_violations
from compaction.core.pipeline import run
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.core.summary import SummaryFailed, SummaryOutcome, SummaryTask
from compaction.core.tool_pairs import split_entries
from compaction.core.transcript import Transcript, TranscriptEntry
from tests.support.random_transcripts import POLICIES, USAGES, entries, transcripts
from tests.support.stage_transcripts import apply_outcome


@settings(max_examples=100, deadline=None)
@given(
    transcripts(), USAGES, st.integers(1, 12_000), st.booleans(), st.none() | st.integers(0, 100)
)
def test_every_outcome_holds_its_invariants(
    transcript: Transcript, usage: LastUsage | None, window: int, force: bool, up_to_seq: int | None
) -> None:
    tasks: list[SummaryTask] = []

    def summarize(task: SummaryTask) -> SummaryOutcome:
        tasks.append(task)
        return SummaryOutcome(text="Brief.")

    original = copy.deepcopy(transcript)
    measurement, budget = measure(transcript, ONECLAW, usage), plan(ONECLAW, window)
    outcome = run(
        transcript, ONECLAW, budget, measurement, summarize, force=force, up_to_seq=up_to_seq
    )
    assert transcript == original
    assert find_violations(transcript, outcome) == []
    assert len(tasks) == (outcome.status != "skipped")
    has_pins = any(entry.pinned for entry in outcome.entries)
    assert outcome.reason or outcome.is_applied
    assert not (outcome.reason and outcome.is_applied) or has_pins
    if outcome.is_applied:
        gone = {entry.seq for entry in transcript.entries} - {
            entry.seq for entry in outcome.entries
        }
        assert len(gone) == outcome.messages_compacted
        assert gone <= {entry.seq for entry in tasks[0].entries}
        assert up_to_seq is None or max(gone) <= up_to_seq


@settings(max_examples=100, deadline=None)
@given(transcripts(), st.integers(1, 12_000))
def test_over_the_threshold_with_more_than_one_piece_there_is_something_to_do(
    transcript: Transcript, window: int
) -> None:
    free = Transcript(
        entries=tuple(
            TranscriptEntry(
                seq=e.seq, role=e.role, content=e.content, calls=e.calls, call_id=e.call_id
            )
            for e in transcript.entries
        ),
        overhead_tokens=transcript.overhead_tokens,
    )
    budget, measurement = plan(ONECLAW, window), measure(free, ONECLAW)
    assert budget is not None
    outcome = run(free, ONECLAW, budget, measurement, lambda task: SummaryOutcome(text="B"))
    pieces = split_entries(free.entries)
    has_other_pieces = len(pieces) > len(_list_open_questions(pieces)) + 1
    if budget.is_over(measurement.tokens) and has_other_pieces:
        assert outcome.status != "skipped"
    if not budget.is_over(measurement.tokens):
        assert outcome.status == "skipped"


@settings(max_examples=100, deadline=None)
@given(transcripts(), st.integers(100, 12_000))
def test_compacting_what_was_compacted_never_moves_back(
    transcript: Transcript, window: int
) -> None:
    budget = plan(ONECLAW, window)
    first = run(
        transcript,
        ONECLAW,
        budget,
        measure(transcript, ONECLAW),
        lambda task: SummaryOutcome(text="Brief."),
        force=True,
    )
    after = Transcript(
        entries=first.entries, summary=first.summary, overhead_tokens=transcript.overhead_tokens
    )
    second = run(
        after,
        ONECLAW,
        budget,
        measure(after, ONECLAW),
        lambda task: SummaryOutcome(text="B."),
        force=True,
    )
    assert (
        not (first.boundary_seq and second.boundary_seq) or second.boundary_seq > first.boundary_seq
    )


@settings(max_examples=100, deadline=None)
@given(
    entries(rich=True),
    st.sampled_from(POLICIES),
    st.integers(0, 2_000),
    st.integers(100, 30_000),
    st.booleans(),
    st.data(),
)
def test_every_preset_holds_the_invariants_and_twice_is_once(
    messages: tuple[TranscriptEntry, ...],
    policy: Policy,
    overhead: int,
    window: int,
    force: bool,
    data: st.DataObject,
) -> None:
    fails, up_to = data.draw(st.booleans()), data.draw(st.none() | st.none() | st.integers(0, 100))
    usage = data.draw(USAGES)

    def summarize(task: SummaryTask) -> SummaryOutcome:
        if fails:
            raise SummaryFailed("The model is away.")
        return SummaryOutcome(text="Brief.")

    transcript = Transcript(
        entries=messages,
        summary=data.draw(st.sampled_from([None, "Earlier.", "e" * 4_000])),
        overhead_tokens=overhead,
    )
    original, budget = copy.deepcopy(transcript), plan(policy, window)
    outcome = run(
        transcript,
        policy,
        budget,
        measure(transcript, policy, usage),
        summarize,
        force=force,
        up_to_seq=up_to,
    )
    assert transcript == original
    assert find_violations(transcript, outcome) == []
    assert outcome.reason or outcome.is_applied
    assert not outcome.summary_error or (fails and outcome.summary == transcript.summary)
    if outcome.is_applied:
        target_seqs = {target.seq for target in outcome.targets}
        assert up_to is None or max(target_seqs) <= up_to
        assert len(target_seqs) == outcome.messages_compacted
        assert not any(entry.seq in target_seqs for entry in messages if entry.pinned)
        once_more(apply_outcome(transcript, outcome), policy, window, outcome.boundary_seq or 0)


def once_more(transcript: Transcript, policy: Policy, window: int, boundary: int) -> None:
    """A second automatic pass does nothing once the first one made room, and never goes back."""
    budget, measurement = plan(policy, window), measure(transcript, policy)
    assert budget is not None
    again = run(transcript, policy, budget, measurement, lambda task: SummaryOutcome(text="Brief."))
    assert find_violations(transcript, again) == []
    assert (again.boundary_seq or boundary) >= boundary
    if not budget.is_over(measurement.tokens):
        assert again.status == "skipped"


@settings(max_examples=100, deadline=None)
@given(
    entries(rich=True), st.sampled_from(POLICIES), st.integers(0, 500), st.integers(1_000, 30_000)
)
def test_a_pass_comes_down_under_the_threshold_or_says_why(
    messages: tuple[TranscriptEntry, ...], policy: Policy, overhead: int, window: int
) -> None:
    free = Transcript(
        entries=tuple(replace(entry, pinned=False) for entry in messages), overhead_tokens=overhead
    )
    budget, measurement = plan(policy, window), measure(free, policy)
    assert budget is not None
    outcome = run(free, policy, budget, measurement, lambda task: SummaryOutcome(text="Brief."))
    if not budget.is_over(measurement.tokens):
        assert outcome.status == "skipped"
        return
    pieces = split_entries(count_entry_tokens(free, policy).entries)
    lasting_pieces = [*_list_open_questions(pieces), *pieces[-1:]]
    lasting_tokens = sum(entry.tokens for piece in lasting_pieces for entry in piece)
    has_other_pieces = len(pieces) > len(lasting_pieces)
    if has_other_pieces and lasting_tokens + overhead + 100 < budget.threshold // 2:
        assert outcome.is_applied
        assert not budget.is_over(outcome.tokens_after)
    elif has_other_pieces:
        assert outcome.status != "skipped"


def _list_open_questions(
    pieces: Sequence[Sequence[TranscriptEntry]],
) -> list[Sequence[TranscriptEntry]]:
    """Return the piece of the question that an open turn answers, if it is not the newest one."""
    if not pieces or not (pieces[-1][-1].role == "tool" or pieces[-1][-1].calls):
        return []
    questions = [piece for piece in pieces if any(entry.role == "user" for entry in piece)]
    return [piece for piece in questions[-1:] if piece is not pieces[-1]]

"""Properties of random conversations with parallel, interleaved, repeated and pending calls."""

import copy
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.boundary import find_boundary
from compaction.core.budget import plan
from compaction.core.estimate import LastUsage, count_entry_tokens, measure
from compaction.core.invariants import find_violations
from compaction.core.pipeline import run
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW, PRESETS
from compaction.core.stages.base import SummaryFailed, SummaryOutcome, SummaryTask
from compaction.core.stages.registry import STAGES
from compaction.core.tool_pairs import find_pairs, find_pending_call, repair, split_entries
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry
from compaction.core.trimming import drop_oldest_to_fit, slide_to_fit
from tests.support.stage_transcripts import apply_outcome, compact

IDS = st.sampled_from(["call_0", "call_1", "call_2", "toolu_9"])
SIZES = st.integers(0, 3_000)
RICH_SIZES = st.sampled_from([0, 1, 200, 600, 2_500, 9_000])
ARGUMENTS = st.sampled_from(
    ["{}", '{"path": "a.py"}', '{"path": "./a.py"}', '{"path": "b.py", "offset": 3}', "{"]
)
# The presets, with numbers that small conversations reach.
POLICIES = [
    Policy.parse({"prune": {"protect_tokens": 500, "minimum_savings": 300}}, each)
    for each in PRESETS.values()
]


@st.composite
def entries(draw: st.DrawFn, *, rich: bool = False) -> tuple[TranscriptEntry, ...]:
    """Messages in any order in which a faulty program may store them; seqs rise, with gaps.

    `rich` adds images, errors, file reads and skills.
    """
    messages: list[TranscriptEntry] = []
    seq = 0
    for role in draw(
        st.lists(st.sampled_from(["user", "assistant", "assistant", "tool", "tool"]), max_size=40)
    ):
        seq += draw(st.integers(1, 3))
        calls = draw(st.lists(IDS, unique=True, max_size=3)) if role == "assistant" else []
        entry = TranscriptEntry(
            seq=seq,
            role=role,
            content="x" * draw(RICH_SIZES if rich else SIZES),
            calls=tuple(
                TranscriptCall(
                    id=each, name="read_file" if rich else "tool", arguments=draw(ARGUMENTS)
                )
                for each in calls
            ),
            call_id=draw(IDS) if role == "tool" else "",
            pinned=draw(st.integers(0, 9)) == 0,
        )
        messages.append(draw(enriched_entries(entry)) if rich else entry)
    return tuple(messages)


@st.composite
def enriched_entries(draw: st.DrawFn, entry: TranscriptEntry) -> TranscriptEntry:
    """The message with images, an error or an edit."""
    if entry.role == "tool":
        entry = replace(
            entry,
            tool_name=draw(st.sampled_from(["read_file", "skill"])),
            is_error=draw(st.integers(0, 4)) == 0,
        )
    is_edited = draw(st.integers(0, 6)) == 0
    return replace(
        entry,
        images=0 if is_edited else draw(st.sampled_from([0, 0, 0, 1, 2])),
        original="y" * 5_000 if is_edited else None,
    )


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    summary = draw(st.none() | st.integers(1, 9_000).map("s".__mul__))
    return Transcript(
        entries=draw(entries()), summary=summary, overhead_tokens=draw(st.integers(0, 2_000))
    )


USAGES = st.none() | st.builds(
    LastUsage, tokens=st.integers(1, 20_000), after_seq=st.integers(0, 100)
)


@settings(max_examples=300, deadline=None)
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
    assert bool(outcome.reason) == (outcome.status != "applied")
    if outcome.is_applied:
        gone = {entry.seq for entry in transcript.entries} - {
            entry.seq for entry in outcome.entries
        }
        assert len(gone) == outcome.messages_compacted
        assert gone <= {entry.seq for entry in tasks[0].entries}
        assert up_to_seq is None or max(gone) <= up_to_seq


@settings(max_examples=300, deadline=None)
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
    if budget.is_over(measurement.tokens) and len(split_entries(free.entries)) > 1:
        assert outcome.status != "skipped"
    if not budget.is_over(measurement.tokens):
        assert outcome.status == "skipped"


@settings(max_examples=300, deadline=None)
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


@settings(max_examples=300, deadline=None)
@given(entries(), st.integers(0, 3_000), st.floats(1, 4))
def test_a_boundary_is_always_a_safe_place(
    messages: tuple[TranscriptEntry, ...], tail_tokens: int, scale: float
) -> None:
    sized = count_entry_tokens(Transcript(entries=messages), ONECLAW).entries
    boundary = find_boundary(sized, protected_tokens=tail_tokens, token_ratio=scale)
    if boundary is None:
        return
    first = next(index for index, entry in enumerate(sized) if entry.seq == boundary)
    open_call = find_pending_call(sized)
    assert first > 0
    assert sized[first].role != "tool"
    assert not any(caller < first <= result for caller, result in find_pairs(sized))
    assert open_call is None or first <= open_call
    newest = split_entries(sized)[-1]
    assert sum(e.tokens for e in sized[first:]) * scale <= tail_tokens or boundary == newest[0].seq


@settings(max_examples=300, deadline=None)
@given(entries(), st.integers(0, 12_000), st.integers(0, 500))
def test_trimming_keeps_pairs_the_newest_user_message_and_the_order(
    messages: tuple[TranscriptEntry, ...], limit: int, overhead: int
) -> None:
    sized = count_entry_tokens(Transcript(entries=messages), ONECLAW).entries
    rest = drop_oldest_to_fit(sized, limit_tokens=limit, overhead_tokens=overhead)
    seqs = [entry.seq for entry in rest]
    assert seqs == sorted(seqs)
    assert {sized[a].seq in seqs for a, _ in find_pairs(sized)} <= {True, False}
    assert all(
        (sized[caller].seq in seqs) == (sized[result].seq in seqs)
        for caller, result in find_pairs(sized)
    )
    users = [entry.seq for entry in sized if entry.role == "user"]
    assert not users or users[-1] in seqs
    assert not sized or sized[-1].seq in seqs
    if overhead + sum(entry.tokens for entry in rest) > limit:
        assert len(split_entries(rest)) <= 2
    assert drop_oldest_to_fit(rest, limit_tokens=limit, overhead_tokens=overhead) == rest


@settings(max_examples=400, deadline=None)
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
    assert bool(outcome.reason) == (not outcome.is_applied)
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


@settings(max_examples=300, deadline=None)
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
    newest = (
        sum(entry.tokens for entry in split_entries(count_entry_tokens(free, policy).entries)[-1])
        if messages
        else 0
    )
    if len(split_entries(messages)) > 1 and newest + overhead + 100 < budget.threshold // 2:
        assert outcome.is_applied
        assert not budget.is_over(outcome.tokens_after)
    elif len(split_entries(messages)) > 1:
        assert outcome.status != "skipped"


@settings(max_examples=200, deadline=None)
@given(entries(), st.integers(0, 12_000), st.integers(0, 4), st.floats(0, 1))
def test_sliding_keeps_pairs_the_first_the_newest_user_message_and_the_order(
    messages: tuple[TranscriptEntry, ...], limit: int, first: int, fraction: float
) -> None:
    sized = count_entry_tokens(Transcript(entries=messages), ONECLAW).entries
    rest = slide_to_fit(sized, limit_tokens=limit, first_count=first, fraction=fraction)
    seqs = [entry.seq for entry in rest]
    assert seqs == sorted(seqs)
    assert all(
        (sized[caller].seq in seqs) == (sized[result].seq in seqs)
        for caller, result in find_pairs(sized)
    )
    assert {entry.seq for entry in sized[:first]} <= set(seqs)
    assert {entry.seq for entry in sized if entry.pinned} <= set(seqs)
    assert not sized or sized[-1].seq in seqs
    assert (rest == sized) or sum(entry.tokens for entry in sized) > limit


@settings(max_examples=200, deadline=None)
@given(entries())
def test_after_a_repair_every_call_has_its_result_and_every_result_its_call(
    messages: tuple[TranscriptEntry, ...],
) -> None:
    repair_result = repair(messages)
    complete = repair_result.entries
    tasks = sum(len(entry.calls) for entry in complete)
    assert len(find_pairs(complete)) == tasks == sum(entry.role == "tool" for entry in complete)
    assert len(complete) == len(messages) + repair_result.calls_fixed + repair_result.results_fixed


def test_ten_thousand_messages_are_compacted_and_trimmed() -> None:
    messages = tuple(
        TranscriptEntry(
            seq=n,
            role=("user", "assistant", "tool")[n % 3],
            content="x" * 400,
            calls=calls_of(n),
            call_id=f"c{n - 1}" if n % 3 == 2 else "",
        )
        for n in range(3, 10_003)
    )
    transcript, budget = Transcript(entries=messages), plan(ONECLAW, 200_000)
    outcome = run(
        transcript,
        ONECLAW,
        budget,
        measure(transcript, ONECLAW),
        lambda task: SummaryOutcome(text="Brief."),
    )
    trimmed_entries = drop_oldest_to_fit(
        count_entry_tokens(transcript, ONECLAW).entries, limit_tokens=170_000
    )
    assert outcome.is_applied
    assert trimmed_entries


def calls_of(n: int) -> tuple[TranscriptCall, ...]:
    return (TranscriptCall(id=f"c{n}", name="tool", arguments="{}"),) if n % 3 == 1 else ()


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_each_stage_gets_through_ten_thousand_messages(stage: str) -> None:
    """Anything that takes the square of their number would take minutes here.

    `tests/benchmarks` measures how long each preset takes.
    """
    policy = Policy.parse(
        {"stages": [stage], "protect": {"kind": "count", "count": 6}, "slide": {"fraction": 0.001}},
        ONECLAW,
    )
    calls = (TranscriptCall(id="c", name="read_file", arguments='{"path": "a.py"}'),)
    messages: list[TranscriptEntry] = []
    for seq in range(1, 10_001, 4):
        messages += [
            TranscriptEntry(seq=seq, role="user", content="x" * 2_000, images=1),
            TranscriptEntry(seq=seq + 1, role="assistant", calls=calls),
        ]
        messages += [
            TranscriptEntry(seq=seq + 2, role="tool", call_id="c", content="y" * 2_000),
            TranscriptEntry(seq=seq + 3, role="assistant", content="z"),
        ]
    assert compact(tuple(messages), policy, window=200_000).is_applied

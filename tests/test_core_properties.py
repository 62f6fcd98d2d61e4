"""Whatever the conversation: random transcripts with parallel, interleaved, repeated and pending tool calls hold every invariant."""

import copy
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.boundary import choose
from compaction.core.budget import plan
from compaction.core.estimate import LastUsage, measure, weigh
from compaction.core.invariants import violations
from compaction.core.pipeline import SummaryTask, run
from compaction.core.presets import ONECLAW
from compaction.core.tool_pairs import groups, pairs, pending
from compaction.core.transcript import Call, Entry, Transcript
from compaction.core.trim import drop_oldest

IDS = st.sampled_from(["call_0", "call_1", "call_2", "toolu_9"])
SIZES = st.integers(0, 3_000)


@st.composite
def entries(draw: st.DrawFn) -> tuple[Entry, ...]:
    """Messages in any order a broken world may store them in; seqs rise, with gaps."""
    made: list[Entry] = []
    seq = 0
    for role in draw(st.lists(st.sampled_from(["user", "assistant", "assistant", "tool", "tool"]), max_size=40)):
        seq += draw(st.integers(1, 3))
        content = "x" * draw(SIZES)
        calls = draw(st.lists(IDS, unique=True, max_size=3)) if role == "assistant" else []
        made.append(
            Entry(
                seq=seq,
                role=role,
                content=content,
                calls=tuple(Call(id=each, name="tool", arguments="{}") for each in calls),
                call_id=draw(IDS) if role == "tool" else "",
                pinned=draw(st.integers(0, 9)) == 0,
            )
        )
    return tuple(made)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    summary = draw(st.none() | st.integers(1, 9_000).map("s".__mul__))
    return Transcript(entries=draw(entries()), summary=summary, overhead_tokens=draw(st.integers(0, 2_000)))


USAGES = st.none() | st.builds(LastUsage, tokens=st.integers(1, 20_000), after_seq=st.integers(0, 100))


@settings(max_examples=300, deadline=None)
@given(transcripts(), USAGES, st.integers(1, 12_000), st.booleans(), st.none() | st.integers(0, 100))
def test_every_outcome_holds_its_invariants(
    transcript: Transcript, usage: LastUsage | None, window: int, force: bool, up_to_seq: int | None
) -> None:
    asked: list[SummaryTask] = []

    def summarize(task: SummaryTask) -> str:
        asked.append(task)
        return "Brief."

    original = copy.deepcopy(transcript)
    measured, budget = measure(transcript, ONECLAW, usage), plan(ONECLAW, window)
    outcome = run(transcript, ONECLAW, budget, measured, summarize, force=force, up_to_seq=up_to_seq)
    assert transcript == original
    assert violations(transcript, outcome) == []
    assert len(asked) == (outcome.status != "skipped")
    assert bool(outcome.reason) == (outcome.status != "applied")
    if outcome.applied:
        gone = {entry.seq for entry in transcript.entries} - {entry.seq for entry in outcome.kept}
        assert len(gone) == outcome.messages_compacted
        assert gone <= {entry.seq for entry in asked[0].entries}
        assert up_to_seq is None or max(gone) <= up_to_seq


@settings(max_examples=300, deadline=None)
@given(transcripts(), st.integers(1, 12_000))
def test_over_the_threshold_with_more_than_one_piece_there_is_something_to_do(transcript: Transcript, window: int) -> None:
    free = Transcript(
        entries=tuple(Entry(seq=e.seq, role=e.role, content=e.content, calls=e.calls, call_id=e.call_id) for e in transcript.entries),
        overhead_tokens=transcript.overhead_tokens,
    )
    budget, measured = plan(ONECLAW, window), measure(free, ONECLAW)
    assert budget is not None
    outcome = run(free, ONECLAW, budget, measured, lambda task: "B")
    if budget.over(measured.tokens) and len(groups(free.entries)) > 1:
        assert outcome.status != "skipped"
    if not budget.over(measured.tokens):
        assert outcome.status == "skipped"


@settings(max_examples=300, deadline=None)
@given(transcripts(), st.integers(100, 12_000))
def test_compacting_what_was_compacted_never_moves_back(transcript: Transcript, window: int) -> None:
    budget = plan(ONECLAW, window)
    first = run(transcript, ONECLAW, budget, measure(transcript, ONECLAW), lambda task: "Brief.", force=True)
    after = Transcript(entries=first.kept, summary=first.summary, overhead_tokens=transcript.overhead_tokens)
    second = run(after, ONECLAW, budget, measure(after, ONECLAW), lambda task: "B.", force=True)
    assert not (first.boundary_seq and second.boundary_seq) or second.boundary_seq > first.boundary_seq


@settings(max_examples=300, deadline=None)
@given(entries(), st.integers(0, 3_000), st.floats(1, 4))
def test_a_boundary_is_always_a_safe_place(made: tuple[Entry, ...], protected: int, scale: float) -> None:
    weighed = weigh(Transcript(entries=made), ONECLAW).entries
    boundary = choose(weighed, protected=protected, scale=scale)
    if boundary is None:
        return
    first = next(index for index, entry in enumerate(weighed) if entry.seq == boundary)
    open_call = pending(weighed)
    assert first > 0
    assert weighed[first].role != "tool"
    assert not any(caller < first <= result for caller, result in pairs(weighed))
    assert open_call is None or first <= open_call
    newest = groups(weighed)[-1]
    assert sum(e.tokens for e in weighed[first:]) * scale <= protected or boundary == newest[0].seq


@settings(max_examples=300, deadline=None)
@given(entries(), st.integers(0, 12_000), st.integers(0, 500))
def test_trimming_keeps_pairs_the_newest_user_message_and_the_order(made: tuple[Entry, ...], limit: int, overhead: int) -> None:
    weighed = weigh(Transcript(entries=made), ONECLAW).entries
    kept = drop_oldest(weighed, limit_tokens=limit, overhead=overhead)
    seqs = [entry.seq for entry in kept]
    assert seqs == sorted(seqs)
    assert {weighed[a].seq in seqs for a, _ in pairs(weighed)} <= {True, False}
    assert all((weighed[caller].seq in seqs) == (weighed[result].seq in seqs) for caller, result in pairs(weighed))
    users = [entry.seq for entry in weighed if entry.role == "user"]
    assert not users or users[-1] in seqs
    assert not weighed or weighed[-1].seq in seqs
    if overhead + sum(entry.tokens for entry in kept) > limit:
        assert len(groups(kept)) <= 2
    assert drop_oldest(kept, limit_tokens=limit, overhead=overhead) == kept


def test_ten_thousand_messages_take_well_under_a_second() -> None:
    made = tuple(
        Entry(
            seq=n,
            role=("user", "assistant", "tool")[n % 3],
            content="x" * 400,
            calls=calls_of(n),
            call_id=f"c{n - 1}" if n % 3 == 2 else "",
        )
        for n in range(3, 10_003)
    )
    transcript, budget = Transcript(entries=made), plan(ONECLAW, 200_000)
    started = time.thread_time()
    outcome = run(transcript, ONECLAW, budget, measure(transcript, ONECLAW), lambda task: "Brief.")
    trimmed = drop_oldest(weigh(transcript, ONECLAW).entries, limit_tokens=170_000)
    assert time.thread_time() - started < 1.0
    assert outcome.applied
    assert trimmed


def calls_of(n: int) -> tuple[Call, ...]:
    return (Call(id=f"c{n}", name="tool", arguments="{}"),) if n % 3 == 1 else ()

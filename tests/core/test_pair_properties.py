"""A boundary, trimming, sliding and a repair keep each call with its result."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.estimate import count_entry_tokens
from compaction.core.presets import ONECLAW
from compaction.core.tool_pairs import find_pairs, find_pending_call, split_entries
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry
from compaction.core.trimming import drop_oldest_to_fit
from compaction.systems.neurolink.sliding import slide_to_fit
from compaction.systems.neurolink.tool_pair_repair import repair
from tests.support.boundaries import find_boundary
from tests.support.random_transcripts import entries


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=100, deadline=None)
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


@st.composite
def long_tasks(draw: st.DrawFn) -> list[TranscriptEntry]:
    """Turns of up to 40 rounds of tools, and up to 10 short turns after them."""
    messages: list[TranscriptEntry] = []

    def add(role: str, tokens: int, **other: Any) -> None:
        messages.append(TranscriptEntry(seq=len(messages), role=role, tokens=tokens, **other))

    for rounds in draw(st.lists(st.integers(0, 40), min_size=1, max_size=4)):
        add("user", draw(st.integers(1, 400)))
        for _ in range(rounds):
            call = TranscriptCall(id=f"call_{len(messages)}", name="tool")
            add("assistant", 20, calls=(call,))
            add("tool", draw(st.integers(1, 400)), call_id=call.id)
        add("assistant", draw(st.integers(1, 100)))
    for _ in range(draw(st.integers(0, 10))):
        add("user", 20)
        add("assistant", 20)
    add("user", 20)
    return messages


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(long_tasks(), st.integers(4_000, 12_000), st.booleans())
def test_a_turn_that_is_cut_keeps_its_question_and_the_room_is_used(
    messages: list[TranscriptEntry], limit: int, does_slide: bool
) -> None:
    rest = tuple(messages)
    if does_slide:
        rest = slide_to_fit(rest, limit_tokens=limit, first_count=2, fraction=0.5)
    rest = drop_oldest_to_fit(rest, limit_tokens=limit)
    used_tokens = sum(entry.tokens for entry in rest)
    total_tokens = sum(entry.tokens for entry in messages)
    assert used_tokens <= limit
    if total_tokens <= limit:
        assert used_tokens == total_tokens
        return
    # No piece is larger than a tenth of the room, so a step never takes much more than half.
    assert used_tokens > limit / 4
    kept_seqs = {entry.seq for entry in rest}
    question_seq = None
    for entry in messages:
        if entry.role == "user":
            question_seq = entry.seq
        assert entry.seq not in kept_seqs or question_seq in kept_seqs


@settings(max_examples=100, deadline=None)
@given(entries())
def test_after_a_repair_every_call_has_its_result_and_every_result_its_call(
    messages: tuple[TranscriptEntry, ...],
) -> None:
    repair_result = repair(messages)
    complete = repair_result.entries
    tasks = sum(len(entry.calls) for entry in complete)
    assert len(find_pairs(complete)) == tasks == sum(entry.role == "tool" for entry in complete)
    assert len(complete) == len(messages) + repair_result.calls_fixed + repair_result.results_fixed

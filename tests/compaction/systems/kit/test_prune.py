"""The stage prune_tool_outputs: which results a placeholder replaces."""

from typing import Any

import pytest

from compaction.core.outcome import Outcome
from compaction.core.transcript import TranscriptEntry
from tests.support.stage_transcripts import answer, build_policy, compact, result, talk, user


def results(*tokens: int, first: int = 1) -> tuple[TranscriptEntry, ...]:
    """Rounds of one call each, whose results have so many tokens under oneclaw."""
    messages = []
    for place, each in enumerate(tokens):
        seq = first + 2 * place
        messages += [answer(seq, "", calls="a"), result(seq + 1, "a", "x" * 4 * each)]
    return tuple(messages)


def prune(entries: tuple[TranscriptEntry, ...], **knobs: Any) -> list[int]:
    """The seqs that are pruned in a pass asked for by hand, under knobs that leave out the tail."""
    return [edit.seq for edit in outcome_of(entries, **knobs).edits]


def outcome_of(
    entries: tuple[TranscriptEntry, ...], protect: dict[str, Any] | None = None, **knobs: Any
) -> Outcome:
    tail = {"kind": "count", "count": 0} | (protect or {})
    knobs = {"protect_tokens": 1_000, "minimum_savings": 0} | knobs
    return compact(
        entries,
        build_policy("prune_tool_outputs", prune=knobs, protect=tail),
        window=1_000_000,
        force=True,
    )


def test_an_old_result_gives_way_to_the_placeholder_and_its_call_stays() -> None:
    outcome = outcome_of((*results(500, 900, 400), answer(7)), placeholder="[gone]")
    assert [(edit.seq, edit.kind, edit.replacement) for edit in outcome.edits] == [
        (2, "pruned", "[gone]")
    ]
    assert [entry.seq for entry in outcome.entries] == [1, 2, 3, 4, 5, 6, 7]
    assert outcome.entries[1].original == "x" * 2_000
    assert (outcome.boundary_seq, outcome.summary) == (None, None)


def test_the_result_that_crosses_the_number_is_kept_or_is_the_first_to_go() -> None:
    entries = (*results(300, 500, 800, 700), answer(9))
    assert prune(entries, crossing_item="keep") == [2, 4]
    assert prune(entries, crossing_item="prune") == [2, 4, 6]


def test_exactly_the_protected_number_of_tokens_stays_either_way() -> None:
    entries = (*results(300, 600, 400), answer(7))
    assert prune(entries, crossing_item="keep") == prune(entries, crossing_item="prune") == [2]


def test_nothing_is_pruned_unless_it_saves_enough() -> None:
    entries = (*results(504, 1_000), answer(5))
    saves = 504 - len("[Tool result cleared]") // 4
    assert prune(entries, minimum_savings=saves) == [2]
    assert prune(entries, minimum_savings=saves, strict=True) == []
    assert prune(entries, minimum_savings=saves - 1, strict=True) == [2]
    assert prune(entries, minimum_savings=saves + 1) == []


def test_the_newest_turns_are_not_looked_at_and_do_not_count() -> None:
    entries = (
        user(1),
        *results(700, 700, first=2),
        user(6),
        *results(800, first=7),
        user(9),
        *results(900, first=10),
        answer(12),
    )
    assert prune(entries, crossing_item="prune") == [3, 5, 8]
    assert prune(entries, crossing_item="prune", skip_user_turns=1) == [3, 5]
    assert prune(entries, crossing_item="prune", skip_user_turns=2) == [3]
    assert prune(entries, crossing_item="prune", skip_user_turns=3) == []


def test_results_of_protected_tools_stay() -> None:
    entries = (
        answer(1, calls="a"),
        result(2, "a", "x" * 4_000, tool="skill"),
        *results(600, 1_000, first=3),
        answer(7),
    )
    assert prune(entries) == [2, 4]
    assert prune(entries, protected_tools=["skill"]) == [4]
    assert prune(entries, protect={"tools": ["skill"]}) == [4]


def test_errors_small_results_pins_and_what_was_asked_to_be_left_stay() -> None:
    entries = (
        *(
            answer(1, calls="abcd"),
            result(2, "a", "x" * 800, is_error=True),
            result(3, "b", "x" * 400),
        ),
        *(
            result(4, "c", "x" * 900),
            result(5, "d", "x" * 4_000),
            *results(1_000, first=6),
            answer(8),
        ),
    )
    assert prune(entries, protect={"errors": True, "min_chars": 400}) == [4, 5]
    knobs = {"protect_tokens": 0, "minimum_savings": 0}
    outcome_by_hand = compact(
        entries,
        build_policy("prune_tool_outputs", prune=knobs, protect={"kind": "count", "count": 1}),
        force=True,
        up_to_seq=3,
    )
    assert [edit.seq for edit in outcome_by_hand.edits] == [2, 3]
    pinned = (*entries[:4], result(5, "d", "x" * 4_000, pinned=True), *entries[5:])
    assert prune(pinned, protect_tokens=0) == [7]


def test_what_is_no_longer_than_the_placeholder_stays() -> None:
    assert prune((*results(1, 2, 1_000), answer(7)), protect_tokens=0) == [6]


def test_pruning_twice_is_pruning_once() -> None:
    once = outcome_of((*results(500, 900, 400), answer(7)))
    assert outcome_of(once.entries).status == "skipped"


@pytest.mark.parametrize(
    ("target", "stages_used"),
    [(0.5, ("prune_tool_outputs", "summarize")), (0.8, ("prune_tool_outputs",))],
)
def test_the_summary_is_written_only_when_pruning_was_not_enough(
    target: float, stages_used: tuple[str, ...]
) -> None:
    prune = {"protect_tokens": 500, "minimum_savings": 500}
    both = build_policy(
        "prune_tool_outputs",
        "summarize",
        prune=prune,
        protect={"kind": "count", "count": 4},
        target={"ratio": target},
    )
    outcome = compact((*results(2_000, 1_000), *talk(34, first=11)), both)
    assert outcome.stages_used == stages_used
    assert outcome.tokens_after <= 10_000 * target

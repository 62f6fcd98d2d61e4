"""The stage slide_window: how many of the oldest messages it leaves out."""

from dataclasses import replace
from typing import Any

import pytest

from compaction.core.outcome import Outcome
from compaction.core.transcript import Transcript
from compaction.systems.neurolink.sliding import find_slide_index
from tests.support.stage_transcripts import (
    Summarizer,
    answer,
    build_policy,
    compact,
    result,
    talk,
    user,
)

MARKER = "[Earlier conversation history was truncated to fit within context limits]"
KNOBS: dict[str, Any] = {
    "protect": {"kind": "count", "count": 2, "first": 2},
    "target": {"otherwise": "fits"},
}
SLIDE = build_policy("slide_window", **KNOBS)


def left_out(outcome: Outcome) -> list[int]:
    return [target.seq for target in outcome.targets if target.method == "left_out"]


def test_the_first_pair_stays_half_of_the_rest_goes_and_a_marker_says_so() -> None:
    outcome = compact(talk(50), SLIDE)
    assert left_out(outcome) == list(range(3, 27))
    assert (outcome.exempt_seqs, outcome.boundary_seq, outcome.marker) == ((1, 2), 27, MARKER)
    assert (outcome.summary, outcome.edits, outcome.stages_used) == (None, (), ("slide_window",))


def test_it_goes_on_until_the_rest_fits() -> None:
    outcome = compact(talk(200), SLIDE)
    assert outcome.tokens_after <= 8_500
    assert len(left_out(outcome)) % 2 == 0
    assert outcome.tokens_after > 4_000


@pytest.mark.parametrize(("fraction", "first_kept"), [(0, 11), (0.1, 11), (0.3, 17), (1, 49)])
def test_the_share_is_a_knob(fraction: float, first_kept: int) -> None:
    assert (
        compact(
            talk(50), build_policy("slide_window", slide={"fraction": fraction}, **KNOBS)
        ).boundary_seq
        == first_kept
    )


def test_the_marker_is_a_knob_and_stays_while_later_passes_leave_out_nothing() -> None:
    outcome = compact(talk(50), build_policy("slide_window", slide={"marker": "[gone]"}, **KNOBS))
    assert outcome.marker == "[gone]"
    grown = Transcript(
        entries=(*outcome.entries, *talk(30, first=51)),
        boundary_seq=outcome.boundary_seq,
        marker=outcome.marker,
    )
    later = compact(grown, build_policy("summarize", **KNOBS))
    assert (later.marker, later.summary, later.exempt_seqs) == ("[gone]", "They spoke.", (1, 2))


def test_four_messages_or_fewer_are_left_alone() -> None:
    assert compact(talk(4, 12_000), SLIDE).status == "skipped"
    assert compact(talk(5, 9_000), SLIDE).is_applied


def test_a_call_goes_with_its_results() -> None:
    rounds = [
        e
        for seq in range(3, 48, 3)
        for e in (
            answer(seq, "x" * 800, calls="ab"),
            result(seq + 1, "a", "x" * 800),
            result(seq + 2, "b", "x" * 800),
        )
    ]
    outcome = compact((user(1), answer(2), *rounds, user(49), answer(50)), SLIDE)
    assert left_out(outcome) == list(range(3, 21))


def test_pins_and_the_newest_question_stay() -> None:
    entries = tuple(
        replace(entry, pinned=entry.seq == 5)
        for entry in (*talk(11), *(answer(seq, "x" * 800) for seq in range(12, 60)))
    )
    outcome = compact(entries, SLIDE)
    assert outcome.exempt_seqs == (1, 2, 5, 11)


def test_within_the_target_nothing_goes_even_by_hand() -> None:
    assert compact(talk(10), SLIDE, force=True).status == "skipped"


def test_it_comes_after_a_summary_that_failed_and_not_after_one_that_was_enough() -> None:
    both = build_policy("summarize", "slide_window", **KNOBS)
    assert compact(talk(50), both).stages_used == ("summarize",)
    outcome = compact(talk(50), both, Summarizer(fails="The model is away."))
    assert (outcome.stages_used, outcome.summary, outcome.summary_error) == (
        ("slide_window",),
        None,
        "The model is away.",
    )
    assert outcome.marker == MARKER


def test_an_old_summary_stays_where_it_slides() -> None:
    entries = talk(50, first=101)
    outcome = compact(Transcript(entries=entries, summary="Before.", boundary_seq=101), SLIDE)
    assert (outcome.summary, outcome.marker) == ("Before.", MARKER)


def places(cuts: list[int], *, stop: int = 100, fraction: float = 0.5, steps: int = 1) -> int:
    """Where a window over 100 messages stands after so many steps."""
    calls = iter(range(1_000))
    return find_slide_index(
        cuts,
        start=2,
        stop=stop,
        length=100,
        fraction=fraction,
        fits=lambda place: next(calls) >= steps,
    )


def test_each_step_is_even_where_a_safe_place_makes_it_so() -> None:
    assert places(list(range(100))) == 50
    assert places([2, 49, 50, 51, 60]) == 50
    assert places([2, 45, 60]) == 60
    assert places([2, 45, 47, 61]) == 47
    assert places([2, 61, 62]) == 61
    assert places([2]) == 2


def test_it_never_passes_where_it_must_stop() -> None:
    assert places(list(range(100)), stop=30) == 30
    assert places(list(range(100)), stop=31, steps=50) == 31
    assert places(list(range(100)), fraction=0, steps=3) == 8

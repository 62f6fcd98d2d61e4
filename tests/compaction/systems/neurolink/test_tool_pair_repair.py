"""Repair of tool pairs: a placeholder for each missing half."""

import pytest

from compaction.core.tool_pairs import find_pairs
from compaction.core.transcript import TranscriptCall, TranscriptEntry
from compaction.systems.neurolink.tool_pair_repair import repair
from tests.support.stage_transcripts import answer, result, talk, user

NO_RESULT = "[Tool result unavailable - conversation was compacted]"


def test_whole_pairs_are_left_as_they_are() -> None:
    entries = (*talk(2), answer(3, calls="ab"), result(4, "b"), result(5, "a"))
    repair_result = repair(entries)
    assert (repair_result.entries, repair_result.calls_fixed, repair_result.results_fixed) == (
        entries,
        0,
        0,
    )


def test_a_call_without_its_result_gets_one() -> None:
    repair_result = repair((user(1), answer(2, calls="ab"), result(3, "b"), user(4)))
    assert [(e.role, e.call_id, e.content) for e in repair_result.entries[2:4]] == [
        ("tool", "a", NO_RESULT),
        ("tool", "b", "A result."),
    ]
    assert (repair_result.calls_fixed, repair_result.results_fixed) == (1, 0)


def test_a_result_without_its_call_gets_one() -> None:
    repair_result = repair((result(1, "a", tool="grep"), user(2)))
    asking = repair_result.entries[0]
    assert (asking.role, asking.content) == (
        "assistant",
        "[Tool call for grep - conversation was compacted]",
    )
    assert asking.calls == (TranscriptCall(id="a", name="grep", arguments="{}"),)
    assert (repair_result.calls_fixed, repair_result.results_fixed) == (0, 1)


def test_an_id_used_again_belongs_to_the_newest_call() -> None:
    repair_result = repair((answer(1, calls="a"), answer(2, calls="a"), result(3, "a")))
    assert [(e.seq, e.content) for e in repair_result.entries if e.role == "tool"] == [
        (1, NO_RESULT),
        (3, "A result."),
    ]


def test_a_second_result_of_one_call_has_no_call() -> None:
    repair_result = repair((answer(1, calls="a"), result(2, "a"), result(3, "a")))
    assert (len(repair_result.entries), repair_result.results_fixed) == (4, 1)


@pytest.mark.parametrize(
    "entries",
    [
        (result(1, ""), result(2, "x")),
        (answer(1, calls="abc"), user(2), result(3, "b")),
        (answer(1, calls="a"), result(2, "a"), answer(3, calls="a"), user(4), result(5, "c")),
    ],
)
def test_after_a_repair_all_is_paired_and_a_second_one_finds_nothing(
    entries: tuple[TranscriptEntry, ...],
) -> None:
    repair_result = repair(entries).entries
    calls = sum(len(entry.calls) for entry in repair_result)
    results = sum(entry.role == "tool" for entry in repair_result)
    assert len(find_pairs(repair_result)) == calls == results
    again = repair(repair_result)
    assert (again.entries, again.calls_fixed, again.results_fixed) == (repair_result, 0, 0)

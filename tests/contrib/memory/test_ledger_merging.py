"""Merging: a newer line supersedes its twin, and nothing else."""

from collections.abc import Iterable

from compaction.memory.core.ledger.lines import LedgerLine
from compaction.memory.core.ledger.merging import merge_lines
from compaction.memory.core.ledger.recognition import recognize_lines


def merge_messages(texts: Iterable[str]) -> tuple[LedgerLine, ...]:
    lines: tuple[LedgerLine, ...] = ()
    for seq, text in enumerate(texts, start=1):
        lines = merge_lines(lines, recognize_lines(text, role="user", seq=seq))
    return lines


def list_current(lines: Iterable[LedgerLine]) -> set[str]:
    return {line.text for line in lines if line.status == "current" and line.kind == "value"}


def test_a_newer_value_supersedes_its_twin_and_both_say_so() -> None:
    old_line, new_line = merge_messages(
        ["The staging port is 8080.", "The staging port is 9090 now."]
    )
    assert (old_line.status, old_line.superseded_by) == ("superseded", 2)
    assert new_line.status == "current"


def test_another_thing_of_the_same_kind_is_left_alone() -> None:
    lines = merge_messages(["The production port is 443.", "The staging port is 9090."])
    assert len(list_current(lines)) == 2


def test_two_invoices_are_two_things() -> None:
    lines = merge_messages(["Invoice INV-118 is over 90 €.", "Invoice INV-119 is over 80 €."])
    assert len(list_current(lines)) == 2


def test_a_new_time_leaves_the_date_as_it_is() -> None:
    lines = merge_messages(
        ["The meeting with Anna is on May 3 at 15:00.", "The meeting with Anna is at 16:00."]
    )
    assert [(line.key, line.status) for line in lines] == [
        ("meeting anna (date)", "current"),
        ("meeting anna (time)", "superseded"),
        ("meeting anna (time)", "current"),
    ]


def test_an_exact_repetition_is_not_added_twice() -> None:
    assert len(merge_messages(["Never push to main.", "never push to main"])) == 1


def test_a_value_that_comes_back_is_current_again() -> None:
    lines = merge_messages(["The port is 8080.", "The port is 9090.", "The port is 8080."])
    assert [line.status for line in lines] == ["superseded", "superseded", "current"]


def test_messages_may_come_in_any_order() -> None:
    new_lines = recognize_lines("The port is 9090.", role="user", seq=5)
    old_lines = recognize_lines("The port is 8080.", role="user", seq=2)
    assert merge_lines(new_lines, old_lines) == merge_lines(old_lines, new_lines)


def test_a_tool_never_supersedes_a_person() -> None:
    lines = recognize_lines("The port is 8080.", role="user", seq=1)
    merged_lines = merge_lines(lines, recognize_lines("port: 9090", role="tool", seq=2))
    assert merged_lines[0].status == "current"


def test_a_dropped_line_does_not_come_back() -> None:
    (line,) = recognize_lines("Never push to main.", role="user", seq=1)
    dropped_line = LedgerLine(
        kind=line.kind, text=line.text, seq=1, role="user", key=line.key, status="dropped"
    )
    merged_lines = merge_lines([dropped_line], recognize_lines(line.text, role="user", seq=4))
    assert [each.status for each in merged_lines] == ["dropped"]

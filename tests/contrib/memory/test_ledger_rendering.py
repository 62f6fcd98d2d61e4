"""The ledger as a text: ranked, grouped, word for word, and never longer than it may be."""

from collections.abc import Iterable

import pytest

from compaction.memory.core.ledger.contradictions import CurrentValues
from compaction.memory.core.ledger.lines import LedgerLine
from compaction.memory.core.ledger.merging import merge_lines
from compaction.memory.core.ledger.recognition import recognize_lines
from compaction.memory.core.ledger.rendering import rank_lines, render_ledger


def build_ledger(texts: Iterable[str]) -> tuple[LedgerLine, ...]:
    lines: tuple[LedgerLine, ...] = ()
    for seq, text in enumerate(texts, start=1):
        lines = merge_lines(lines, recognize_lines(text, role="user", seq=seq))
    return lines


def test_lines_are_grouped_with_the_numbers_of_their_messages() -> None:
    text = render_ledger(build_ledger(["The port is 8080.", "Never push to main."]), max_chars=500)
    assert text.splitlines()[1:] == [
        "Rules:",
        "- [2] Never push to main.",
        "Exact values:",
        "- [1] The port is 8080.",
    ]


def test_what_a_value_was_stands_behind_it_where_there_is_room() -> None:
    ledger = build_ledger(["The port is 8080.", "The port is 9090."])
    assert "- [2] The port is 9090. (was: “The port is 8080.” [1])" in render_ledger(
        ledger, max_chars=500
    )
    assert "8080" not in render_ledger(ledger, max_chars=185)


def test_a_decision_whose_value_was_changed_is_not_shown() -> None:
    ledger = build_ledger(["Let's set the limit to 50 MB.", "The limit is 80 MB."])
    assert "50 MB" not in render_ledger(ledger, max_chars=300).split("(was")[0]


def test_a_part_that_was_changed_is_named() -> None:
    ledger = build_ledger(
        ["The red port is 1000 and the blue port is 2000.", "The blue port is 3000."]
    )
    assert "2000. (changed in part, see [2])" in render_ledger(ledger, max_chars=500)


def test_rules_stay_when_the_room_is_small_and_the_rest_is_counted() -> None:
    texts = [f"The port of host h{number} is {number + 8000}." for number in range(50)]
    text = render_ledger(build_ledger(["Never push to main.", *texts]), max_chars=400)
    assert len(text) <= 400
    assert "Never push to main." in text
    count = text.count("- [")
    assert f"({51 - count} more lines of the ledger are left out here.)" in text


def test_a_dropped_line_is_not_shown_and_a_pinned_one_comes_first() -> None:
    lines = [
        LedgerLine(kind="rule", text="Rule one.", seq=1, role="user", key="one", status="dropped"),
        LedgerLine(
            kind="rule", text="Rule two is longer than that.", seq=2, role="user", key="two"
        ),
        LedgerLine(kind="value", text="A is 1.", seq=3, role="user", key="a", pinned=True),
    ]
    assert rank_lines(lines)[0].seq == 3
    text = render_ledger(lines, max_chars=500)
    assert "Rule one" not in text


def test_nothing_is_said_where_no_line_fits() -> None:
    assert render_ledger(build_ledger(["Never push to main."]), max_chars=40) == ""
    assert render_ledger([], max_chars=400) == ""


def test_values_that_stand_in_several_lines_rank_higher() -> None:
    lines = build_ledger(["The order is A4711.", "The room is B12.", "Ask about A4711 in box C99."])
    assert rank_lines(lines)[-1].text == "The room is B12."


@pytest.mark.parametrize(
    ("sentence", "is_contradiction"),
    [
        ("Their staging port is 9090.", True),
        ("The staging port is 8080, the production port 443.", False),
        ("The production port is 443.", False),
        ("The staging port moved from 9090 to 8080.", False),
        ("The staging port was discussed.", False),
    ],
)
def test_another_value_of_the_same_thing_contradicts_the_ledger(
    sentence: str, is_contradiction: bool
) -> None:
    ledger = build_ledger(["The staging port is 9090.", "The staging port is 8080."])
    assert CurrentValues(ledger).contradict(sentence) is is_contradiction

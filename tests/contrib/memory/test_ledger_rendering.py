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


def test_what_a_long_conversation_began_with_stays_beside_all_that_came_later() -> None:
    """Values and rules have room of their own, and what a model named is no noise."""
    named: list[LedgerLine] = []
    for seq in range(5, 17):
        rule = f"Rule {seq}: stay below the mark of team number {seq}."
        value = f"The locker of team number {seq} is {seq * 111}."
        named += [
            LedgerLine(kind="rule", text=rule, seq=seq, role="user", key=rule, holds="always"),
            LedgerLine(kind="value", text=value, seq=seq, role="user", key=value, holds="always"),
        ]
    noise: list[LedgerLine] = []
    for seq in range(20, 2000):
        noise += [
            LedgerLine(kind="rule", text=f"{seq} rule", seq=seq, role="user", key=f"a{seq}"),
            LedgerLine(kind="value", text=f"{seq} value", seq=seq, role="user", key=f"b{seq}"),
        ]
    text = render_ledger([*named, *noise], max_chars=4_900)
    assert all(line.text in text for line in named)
    assert "1999 rule" in text
    assert "1999 value" in text


def test_rules_leave_room_for_values_and_values_for_rules() -> None:
    rules = [f"Never push to the branch number {seq}." for seq in range(60)]
    values = [f"The port of host h{seq} is {seq + 8000}." for seq in range(60)]
    text = render_ledger(build_ledger([*rules, *values]), max_chars=1_500)
    assert text.count("Never push") > 10
    assert text.count("The port of") > 8


def test_the_rules_of_the_last_hour_come_right_behind_pinned_lines() -> None:
    lines = build_ledger([f"Never push to the branch number {seq}." for seq in range(1, 301)])
    pinned = LedgerLine(kind="value", text="A is 1.", seq=3, role="user", key="a", pinned=True)
    ranked = rank_lines([*lines, pinned], recent_seq=150)
    assert ranked[0] is pinned
    assert {line.seq for line in ranked[1:152]} >= set(range(150, 301))


def test_lines_that_say_the_same_are_one_and_opposites_are_two() -> None:
    def render(*texts: str) -> str:
        lines = [
            LedgerLine(kind="rule", text=text, seq=seq, role="user", key="")
            for seq, text in enumerate(texts, start=1)
        ]
        return render_ledger(lines, max_chars=900)

    same = render("Never push to main on Fridays.", "And please, never push to main on Fridays.")
    assert same.count("push to main") == 1
    other = render("Always push to main on Fridays.", "Never push to main on Fridays.")
    assert other.count("push to main") == 2


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

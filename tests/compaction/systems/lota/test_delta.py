"""The delta after a summary: found, parsed leniently, and never part of the summary."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.systems.lota.delta import parse_delta, split_delta
from compaction.systems.lota.state import SECTIONS, SectionChange, StructuredState

SUMMARY = "Alice plans a trip to Lisbon."
KNOWN = StructuredState(
    sections=dict.fromkeys(SECTIONS, ()) | {"tasks": ("Book a hotel", "Book a flight")}
)


def block(value: Any) -> str:
    return "```json\n" + (value if isinstance(value, str) else json.dumps(value)) + "\n```"


def tasks(value: Any) -> SectionChange:
    return parse_delta(json.dumps({"tasks": value}), KNOWN).sections["tasks"]


@pytest.mark.parametrize(
    "answer",
    [
        f"{SUMMARY}\n\n{block({'tasks': {'add': ['Rent a car']}})}",
        f"{SUMMARY}\n{block({'tasks': {'add': ['Rent a car']}})}\n\n",
        f"{block({'tasks': {'add': ['Rent a car']}})}\n\n{SUMMARY}",
        SUMMARY + '\n```\n{"tasks": {"add": ["Rent a car"]}}\n```',
        SUMMARY + '\n{"tasks": {"add": ["Rent a car"]}}',
        SUMMARY + '\n```json\n{"tasks": {"add": ["Rent a car",],},}',
        SUMMARY + '\n```json\n{"state": {"openTasks": ["Rent a car"]}}\n```',
        json.dumps({"summary": SUMMARY, "tasks": ["Rent a car"]}),
    ],
    ids=[
        "last",
        "blank lines after",
        "first",
        "no language",
        "no fence",
        "commas, no end",
        "another name",
        "one object",
    ],
)
def test_it_is_found_wherever_a_model_puts_it(answer: str) -> None:
    summary, delta_block = split_delta(answer)
    assert summary == SUMMARY
    assert delta_block is not None
    assert parse_delta(delta_block, KNOWN).sections["tasks"].add == ("Rent a car",)


@pytest.mark.parametrize(
    "broken",
    [
        '{"tasks": {"add": ["Rent',
        "{",
        '{"tasks": nonsense}',
        "[1, 2",
        "{}",
        '{"other": 1}',
        '{"tasks": 7}',
    ],
)
def test_a_broken_one_is_lost_alone(broken: str) -> None:
    summary, delta_block = split_delta(f"{SUMMARY}\n```json\n{broken}\n```")
    assert summary in (SUMMARY, f"{SUMMARY}\n```json\n{broken}\n```")
    assert not any(change.add for change in parse_delta(delta_block or "", KNOWN).sections.values())


def test_an_answer_without_one_is_the_summary() -> None:
    assert split_delta(SUMMARY) == (SUMMARY, None)


def test_code_inside_a_summary_stays_there() -> None:
    summary_text = 'The file holds\n```json\n{"port": 8000}\n```\nand Alice asked to change it.'
    answer = summary_text + "\n" + block({"tasks": ["Change the port"]})
    summary, delta_block = split_delta(answer)
    assert '{"port": 8000}' in summary
    assert "Change the port" in (delta_block or "")


@pytest.mark.parametrize(
    "value",
    [{"add": "Rent a car"}, ["Rent a car"], "Rent a car", {"add": [{"text": " Rent  a\ncar "}]}],
)
def test_an_addition_may_be_written_in_many_ways(value: Any) -> None:
    assert tasks(value).add == ("Rent a car",)


@pytest.mark.parametrize(
    "value",
    [
        {"1": "Book two hotels"},
        [{"item": 1, "text": "Book two hotels"}],
        [{"from": "Book a hotel", "to": "Book two hotels"}],
    ],
)
def test_so_may_an_update(value: Any) -> None:
    assert tasks({"update": value}).update == (("Book a hotel", "Book two hotels"),)


@pytest.mark.parametrize("value", [[2], ["2"], ["Book a flight"], 2, [{"item": 2}]])
def test_and_a_removal(value: Any) -> None:
    assert tasks({"remove": value}).remove == ("Book a flight",)


def test_a_number_that_names_nothing_removes_nothing() -> None:
    assert tasks({"remove": [0, 3, -1, 99]}).remove == ("",) * 4


def test_items_are_one_line_and_not_endless() -> None:
    [item] = tasks(["word " * 1000]).add
    assert len(item) <= 500
    assert parse_delta(json.dumps({"memory": ["a\nb", "", 7, None]}), KNOWN).memory == ("a b",)


@given(st.text(max_size=300) | st.from_regex(r"[\{\}\[\]\",:`jsontasks \n]{0,80}"))
def test_nothing_makes_it_raise(text: str) -> None:
    summary, delta_block = split_delta(text)
    parse_delta(delta_block or text, KNOWN)
    assert len(summary) <= len(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                [*SECTIONS, "add", "update", "remove", "state", "memory", "text", "item"]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_json_it_is_only_sentences_come_out(value: Any) -> None:
    delta = parse_delta(json.dumps(value), KNOWN)
    for change in delta.sections.values():
        assert all(
            isinstance(text, str)
            for text in (
                *change.add,
                *change.remove,
                *(each for pair in change.update for each in pair),
            )
        )

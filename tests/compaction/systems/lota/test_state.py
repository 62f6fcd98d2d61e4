"""The structured state: how a delta changes it, and how it is rendered."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from compaction.core.presets import PRESETS
from compaction.systems.lota.settings import StateKnobs
from compaction.systems.lota.state import (
    SECTIONS,
    SectionChange,
    StateDelta,
    StructuredState,
    fit_state,
    merge_delta,
    normalize_sentence,
    number_sections,
    render_state,
)

LIMITS = PRESETS["lota"].get(StateKnobs)

words = st.sampled_from(
    [
        f"{name} {number}"
        for name in ("Hotel", "hotel", "Flight.", "flight", "Visa")
        for number in range(6)
    ]
    + ["", " "]
)
lists = st.lists(words, max_size=14).map(tuple)
changes = st.builds(
    SectionChange,
    add=lists,
    update=st.lists(st.tuples(words, words), max_size=6).map(tuple),
    remove=lists,
)
deltas = st.builds(
    StateDelta, sections=st.dictionaries(st.sampled_from(SECTIONS), changes), memory=lists
)
limits = st.builds(StateKnobs, **{name: st.integers(0, 8) for name in SECTIONS})


@st.composite
def states(draw: st.DrawFn) -> StructuredState:
    """As merging makes them: whatever was added before."""
    additions = {name: SectionChange(add=draw(lists)) for name in SECTIONS}
    return merge_delta(
        StructuredState(), StateDelta(sections=additions, memory=draw(lists)), draw(limits)
    )


def with_decisions(*items: str) -> StructuredState:
    return replace(StructuredState(), sections=dict.fromkeys(SECTIONS, ()) | {"decisions": items})


def merge_decisions(working: StructuredState, **change: tuple[object, ...]) -> tuple[str, ...]:
    return merge_delta(
        working,
        StateDelta(sections={"decisions": SectionChange(**change)}),  # type: ignore[arg-type]
        LIMITS,
    ).sections["decisions"]


@given(states(), deltas, limits)
def test_a_delta_merged_twice_changes_no_more_than_once(
    before: StructuredState, delta: StateDelta, most: StateKnobs
) -> None:
    once = merge_delta(before, delta, most)
    assert merge_delta(once, delta, most) == once


@given(states(), deltas, limits)
def test_every_limit_holds_after_each_merge(
    before: StructuredState, delta: StateDelta, most: StateKnobs
) -> None:
    after = merge_delta(before, delta, most)
    assert set(after.sections) == set(SECTIONS)
    for name, items in after.sections.items():
        assert len(items) <= getattr(most, name)
        assert len({normalize_sentence(item) for item in items}) == len(items)
        assert all(normalize_sentence(item) for item in items)


@given(states(), deltas, limits)
def test_what_a_delta_adds_is_there_unless_the_limit_forbids_it(
    before: StructuredState, delta: StateDelta, most: StateKnobs
) -> None:
    after = merge_delta(before, delta, most)
    for name, change in delta.sections.items():
        newest = [normalize_sentence(text) for text in change.add if normalize_sentence(text)][-1:]
        assert not getattr(most, name) or set(newest) <= {
            normalize_sentence(item) for item in after.sections[name]
        }


@given(states(), deltas, limits)
def test_nothing_is_invented(before: StructuredState, delta: StateDelta, most: StateKnobs) -> None:
    known = {item for items in before.sections.values() for item in items}
    known |= {
        text
        for change in delta.sections.values()
        for text in (*change.add, *(new for _, new in change.update))
    }
    after = merge_delta(before, delta, most)
    assert {item for items in after.sections.values() for item in items} <= known
    assert set(after.memory) <= {*before.memory, *delta.memory}


@given(states(), limits)
def test_an_empty_delta_only_enforces_the_limits(before: StructuredState, most: StateKnobs) -> None:
    after = merge_delta(before, StateDelta(), most)
    for name, items in before.sections.items():
        assert after.sections[name] == (
            items[-getattr(most, name) :] if getattr(most, name) else ()
        )
    assert after.memory == before.memory


def test_items_are_added_updated_and_removed() -> None:
    before = with_decisions("Stay at the Lis", "Fly on 3 May", "Take a car")
    change = {
        "add": ("Eat out.",),
        "update": (("fly on 3 may", "Fly on 4 May"),),
        "remove": ("Take a car.",),
    }
    assert merge_decisions(before, **change) == ("Stay at the Lis", "Fly on 4 May", "Eat out.")


def test_the_newest_items_stay() -> None:
    before = with_decisions(*(f"Decision {number}" for number in range(1, 9)))
    assert merge_decisions(before, add=("Decision 9", "Decision 10")) == tuple(
        f"Decision {number}" for number in range(3, 11)
    )


def test_an_item_named_again_is_the_newest() -> None:
    assert merge_decisions(with_decisions("A thing", "Another"), add=("a thing.",)) == (
        "Another",
        "a thing.",
    )


def test_an_update_of_what_is_not_there_is_an_addition() -> None:
    assert merge_decisions(with_decisions("A"), update=(("Never said", "B"),)) == ("A", "B")


def test_without_a_memory_block_no_entry_is_taken() -> None:
    delta = StateDelta(memory=("Alice likes tea.",))
    assert merge_delta(StructuredState(), delta, LIMITS).memory == ("Alice likes tea.",)
    assert merge_delta(StructuredState(), delta, LIMITS, memory=False).memory == ()


def test_it_reads_as_lists_under_titles() -> None:
    working = replace(
        with_decisions("Stay at the Lis"),
        memory=("Alice likes tea.",),
        memory_summary="Alice lives in Porto.",
    )
    assert render_state(working) == (
        "State of the work:\nKey decisions:\n- Stay at the Lis\n\n"
        "Memory, summarized:\nAlice lives in Porto.\n\nMemory, newest last:\n- Alice likes tea."
    )
    assert render_state(StructuredState()) == ""


def test_a_summarizer_is_shown_numbers_and_no_section_that_the_policy_does_not_keep() -> None:
    text = number_sections(with_decisions("A", "B"), replace(LIMITS, risks=0))
    assert text.startswith("decisions:\n1. A\n2. B\nconstraints: none\n")
    assert "risks" not in text


@given(states(), st.integers(0, 500))
def test_it_fits_into_what_room_there_is(working: StructuredState, most: int) -> None:
    assert len(fit_state(working, most)) <= most


def test_long_items_are_shortened_before_any_is_lost() -> None:
    text = fit_state(with_decisions(*(f"{number} " + "word " * 90 for number in range(8))), 2_000)
    assert [line[2] for line in text.splitlines() if line.startswith("- ")] == list("01234567")

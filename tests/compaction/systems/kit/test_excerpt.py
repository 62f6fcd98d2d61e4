"""The stage excerpt: how many messages it cuts, and in which order."""

import re
from dataclasses import replace
from typing import Any

import pytest

from compaction.core.outcome import Outcome
from compaction.core.presets import ONECLAW
from compaction.core.transcript import TranscriptEntry
from compaction.systems.wolffish.excerpt import cut_middle
from compaction.systems.wolffish.settings import ExcerptKnobs
from tests.support.stage_transcripts import answer, build_policy, compact, result, talk, user

KNOBS = ONECLAW.get(ExcerptKnobs)


def cut_messages(
    entries: tuple[TranscriptEntry, ...], *, target: float = 0.5, **protect: Any
) -> Outcome:
    """A pass with nothing protected but what is named, over a window of 10,000 tokens."""
    tail = {"kind": "count", "count": 0} | protect
    return compact(entries, build_policy("excerpt", protect=tail, target={"ratio": target}))


def seqs(outcome: Outcome) -> list[int]:
    return [edit.seq for edit in outcome.edits]


def test_a_text_keeps_its_beginning_and_end_and_says_what_is_missing() -> None:
    text = "".join(chr(0x4E00 + n) for n in range(10_000))
    short = cut_middle(text, KNOBS)
    label = (
        "[TRUNCATED — 10,000 chars original, 7,700 chars omitted, "
        "showing first 1,500 + last 800 chars]"
    )
    assert short == f"{text[:1_500]}\n\n{label}\n\n{text[-800:]}"


def test_head_and_tail_are_capped() -> None:
    short = cut_middle("h" * 50_000 + "t" * 50_000, KNOBS)
    assert (short.count("h" * 6_000), short.endswith("\n\n" + "t" * 3_000)) == (1, True)
    assert len(short) < 9_200


def test_a_text_that_would_not_become_shorter_stays() -> None:
    assert cut_middle("x" * 100, KNOBS) == "x" * 100
    assert cut_middle("", KNOBS) == ""


def test_each_knob_shapes_the_excerpt() -> None:
    knobs = replace(
        KNOBS,
        head_ratio=0.01,
        head_cap=5,
        tail_ratio=0,
        tail_cap=0,
        marker="<{omitted} of {total}>",
    )
    assert cut_middle("x" * 1_000, knobs) == "xxxxx\n\n<995 of 1000>"
    assert (
        cut_middle(
            "x" * 1_000, replace(knobs, head_ratio=1, head_cap=990, tail_ratio=1, tail_cap=990)
        )
        == "x" * 1_000
    )


def test_tool_results_come_first_and_the_largest_of_them() -> None:
    calls = answer(1, calls="abc")
    results = (
        result(2, "a", "x" * 8_000),
        result(3, "b", "x" * 20_000),
        result(4, "c", "x" * 12_000),
    )
    assert seqs(cut_messages((calls, *results, answer(5)), target=0.8)) == [3]
    assert seqs(cut_messages((calls, *results, answer(5)), target=0.5)) == [3, 4]


def test_then_answers_and_then_questions_the_oldest_first() -> None:
    entries = (*talk(9, 4_000), user(20))
    assert seqs(cut_messages(entries, target=0.8)) == [2, 4]
    assert seqs(cut_messages(entries, target=0.65)) == [2, 4, 6, 8]
    assert seqs(cut_messages(entries, target=0.5)) == [1, 2, 3, 4, 6, 8]


def test_it_stops_when_the_projected_savings_cover_the_excess() -> None:
    entries = (
        answer(1, calls="abcd"),
        *(result(2 + n, each, "x" * 10_000) for n, each in enumerate("abcd")),
        answer(9),
    )
    hopeful = build_policy(
        "excerpt",
        protect={"kind": "count", "count": 0},
        target={"ratio": 0.6},
        excerpt={"expected_ratio": 0.01},
    )
    wary = build_policy(
        "excerpt",
        protect={"kind": "count", "count": 0},
        target={"ratio": 0.6},
        excerpt={"expected_ratio": 0.9},
    )
    assert len(compact(entries, hopeful).edits) == 2
    assert len(compact(entries, wary).edits) == 4


def test_by_hand_within_the_threshold_all_that_may_be_cut_is_cut() -> None:
    outcome = compact(
        talk(9, 2_000), build_policy("excerpt", protect={"kind": "count", "count": 2}), force=True
    )
    assert seqs(outcome) == [1, 2, 3, 4, 5, 6, 7]


def test_calls_of_an_answer_stay_as_they_are() -> None:
    entries = (answer(1, "x" * 40_000, calls="a"), result(2, "a"), answer(3))
    outcome = cut_messages(entries)
    assert [call.id for call in outcome.entries[0].calls] == ["a"]
    assert "TRUNCATED" in outcome.entries[0].content


def test_errors_small_messages_first_ones_pins_and_the_newest_stay() -> None:
    big = "x" * 8_000
    start = (
        user(1, big),
        answer(2, calls="ab"),
        result(3, "a", big, is_error=True),
        result(4, "b", "x" * 500),
    )
    entries = (*start, answer(5, big, pinned=True), answer(6, big), user(7, big), answer(8, big))
    outcome = cut_messages(entries, first=1, errors=True, min_chars=500, count=2)
    assert seqs(outcome) == [6]


def test_the_newest_of_each_role_stay() -> None:
    results = tuple(result(2 + n, each, "x" * 6_000) for n, each in enumerate("abcdef"))
    outcome = cut_messages(
        (answer(1, calls="abcdef"), *results, *talk(8, 1_000, first=9)),
        kind="per_role",
        count=3,
        target=0.2,
    )
    assert seqs(outcome) == [2, 3, 4, 9, 10]


def test_the_newest_that_alone_are_over_the_threshold_are_cut_but_for_the_very_newest() -> None:
    results = tuple(result(3 + n, each, "x" * 16_000) for n, each in enumerate("abc"))
    outcome = cut_messages((user(1), answer(2, calls="abc"), *results), kind="per_role", count=3)
    assert seqs(outcome) == [3, 4]


def test_an_image_in_what_is_cut_is_told_of() -> None:
    outcome = cut_messages((user(1, "x" * 40_000, images=1), answer(2)))
    assert outcome.edits[0].replacement.startswith("[Image omitted from context]\nxxx")
    assert outcome.entries[0].images == 0


def test_what_was_cut_before_is_not_cut_again() -> None:
    once = cut_messages(
        (answer(1, calls="a"), result(2, "a", "x" * 40_000), *talk(3, 400, first=3))
    )
    assert seqs(once) == [2]
    again = compact(
        once.entries, build_policy("excerpt", protect={"kind": "count", "count": 3}), force=True
    )
    assert again.status == "skipped"


@pytest.mark.parametrize("up_to", [2, 4])
def test_nothing_newer_than_asked_is_cut(up_to: int) -> None:
    outcome = compact(
        talk(9, 2_000),
        build_policy("excerpt", protect={"kind": "count", "count": 2}),
        force=True,
        up_to_seq=up_to,
    )
    assert seqs(outcome) == list(range(1, up_to + 1))


@pytest.mark.parametrize("ratios", [(0.15, 0.08), (0.05, 0.004), (0.01, 0.34), (0.34, 0.005)])
def test_each_file_that_a_cut_text_shows_has_its_fences(ratios: tuple[float, float]) -> None:
    files = [
        f'<attached_file name="{name}.txt">\n{"word " * 300}\n</attached_file>' for name in "abc"
    ]
    text = "\n\n".join(["What of these?", *files])
    knobs = replace(KNOBS, head_ratio=ratios[0], tail_ratio=ratios[1])
    short = cut_middle(text, knobs)
    assert len(short) < len(text)
    is_open = False
    for part in re.split(r'(<attached_file name="[a-c]\.txt">|</attached_file>)', short):
        assert "attached_file" not in part or part.startswith(("<a", "</a"))
        if "attached_file" in part:
            assert is_open == part.startswith("</")
            is_open = not is_open
    assert not is_open

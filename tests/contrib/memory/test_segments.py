"""Composing a summary of segments: whole where there is room, by rank where there is not."""

import re
import subprocess
import sys
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.outcome import NumberedLine, Segment
from compaction.memory.core.segments.composition import (
    MAX_SEGMENTS,
    compose_summary,
    join_oldest_segments,
)
from compaction.memory.core.segments.ranking import join_sentences, split_segment
from compaction.memory.core.segments.spans import Span, divide_lines, plan_segments

UNLIMITED = 10**9
TOPICS = ("hotel", "visa", "boat", "garden", "piano", "budget", "school", "bridge")


def count_tokens(text: str) -> int:
    return max(1, len(text) // 4) if text else 0


def build_segment(index: int, text: str, kind: Any = "span") -> Segment:
    return Segment(first_seq=10 * index + 1, last_seq=10 * index + 10, text=text, kind=kind)


def name_topic(index: int) -> str:
    return f"{TOPICS[index % 8]}{chr(ord('a') + index // 8)}"


def build_segments(count: int) -> list[Segment]:
    """Return segments of eight sentences, each about a topic of its own."""
    segments = []
    for index in range(count):
        topic = name_topic(index)
        sentences = [
            f"They talked about the {topic} for quite some time that day.",
            f"The price of the {topic} is {1000 + index} euros.",
            f"Nobody must ever move the {topic}.",
            "It was a nice talk, as such talks are.",
            f"Ada asked Ben what he thought of the {topic}.",
            "He said that it was fine, more or less.",
            f"The {topic} opens on 2026-03-{index % 28 + 1:02d}.",
            "Then they went on to other things.",
        ]
        segments.append(build_segment(index, " ".join(sentences)))
    return segments


def compose(segments: list[Segment], space: int, newest_text: str = "") -> str:
    return compose_summary(
        segments, space=space, limit=UNLIMITED, count_tokens=count_tokens, newest_text=newest_text
    )


def test_segments_that_fit_stand_whole_and_in_order() -> None:
    segments = [build_segment(0, "Ada came."), build_segment(1, "- Ben left.\n- Ada stayed.")]
    assert compose(segments, 100) == (
        "Messages 1–10: Ada came.\n\nMessages 11–20:\n- Ben left.\n- Ada stayed."
    )


def test_a_segment_of_one_message_says_its_number() -> None:
    segment = Segment(first_seq=7, last_seq=7, text="Ada came.")
    assert compose([segment], 100) == "Message 7: Ada came."


def test_where_room_is_short_each_segment_keeps_a_sentence_and_the_newest_stands_whole() -> None:
    segments = build_segments(12)
    summary = compose(segments, 800)
    assert count_tokens(summary) <= 800
    for index in range(11):
        assert f"Messages {10 * index + 1}–{10 * index + 10}" in summary
    assert summary.count(" (in part): ") >= 6
    assert f"Messages 111–120: {segments[-1].text}" in summary


def test_rules_and_values_come_before_small_talk() -> None:
    summary = compose(build_segments(12), 600)
    assert sum(f"{1000 + index} euros" in summary for index in range(12)) >= 10
    assert sum(f"ever move the {name_topic(index)}." in summary for index in range(12)) >= 9
    assert summary.count("nice talk") <= 2


def test_older_segments_lose_more_than_newer_ones() -> None:
    summary = compose(build_segments(16), 1_100)
    lengths = [len(section) for section in summary.split("\n\n")]
    assert len(lengths) == 16
    assert sum(lengths[:8]) < sum(lengths[8:])


def test_a_segment_that_the_newest_messages_speak_of_stands_whole() -> None:
    segments = build_segments(12)
    summary = compose(segments, 900, "What does the boata cost, and when does it open?")
    assert f"Messages 21–30: {segments[2].text}" in summary
    assert segments[3].text not in summary


def test_in_a_very_long_chat_a_segment_that_is_spoken_of_stands_apart() -> None:
    segments = build_segments(190)
    summary = compose(segments, 1_000, "Tell me more about the boatf and the pianom.")
    assert f"Messages 421–430: {segments[42].text}" not in compose(segments, 1_000)
    assert f"Messages 421–430: {segments[42].text}" in summary
    assert count_tokens(summary) <= 1_000


def test_nothing_is_worded_anew() -> None:
    segments = build_segments(30)
    source = " ".join(segment.text for segment in segments)
    for section in compose(segments, 900).split("\n\n"):
        _, _, body = section.partition(": ")
        for sentence in re.split(r"(?<=\.) (?=[A-Z])", body):
            assert sentence in source


def test_in_a_very_long_chat_the_oldest_segments_share_headings() -> None:
    summary = compose(build_segments(190), 1_000)
    assert count_tokens(summary) <= 1_000
    headings = re.findall(r"Messages (\d+)–(\d+)", summary)
    assert headings[0][0] == "1"
    assert int(headings[0][1]) > 100
    assert headings[-1] == ("1891", "1900")
    assert len(headings) <= 15


def test_a_text_of_a_person_stands_first_word_for_word() -> None:
    text = "  Ada said:\n\n so it is.  \nNever mind"
    segments = [build_segment(0, text, "text"), *build_segments(6)[1:]]
    summary = compose(segments, 400)
    assert summary.startswith(f"{text}\n\nMessages 11–20 ")
    assert count_tokens(summary) <= 400


def test_a_long_text_of_a_person_leaves_half_of_the_room_to_others() -> None:
    text = " ".join(f"Rule {number} holds." for number in range(100))
    space = count_tokens(text)
    summary = compose([build_segment(0, text, "text"), *build_segments(12)[1:]], space)
    assert summary.startswith(text)
    assert space < count_tokens(summary) <= space + space // 2


def test_all_together_never_exceeds_the_limit() -> None:
    text = " ".join(f"Rule {number} holds." for number in range(100))
    summary = compose_summary(
        [build_segment(0, text, "text"), *build_segments(12)[1:]],
        space=10_000,
        limit=300,
        count_tokens=count_tokens,
    )
    assert count_tokens(summary) <= 300


def test_a_heading_stays_with_what_stands_under_it() -> None:
    text = "## Plans\n- Fly to Rome on 3 May.\n## Rejected:\n- Sail to Malta for 900 euros."
    segments = [build_segment(0, text), build_segment(1, "Ben sang all night long. " * 10)]
    summary = compose(segments, 60)
    for heading, item in (("## Plans", "Rome"), ("## Rejected:", "Malta")):
        assert (heading in summary) is (item in summary)
    assert "## " in summary


@pytest.mark.slow
def test_the_order_of_words_in_memory_changes_nothing() -> None:
    """Sets of words have another order in each process."""
    program = (
        "from tests.contrib.memory.test_segments import build_segments, compose;"
        "print(hash(()), compose(build_segments(40), 900, 'the boata and the visab'))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


def test_too_many_segments_are_joined_and_the_newest_half_is_not() -> None:
    segments = [build_segment(0, "As I said.", "text"), *build_segments(MAX_SEGMENTS + 1)[1:]]
    joined_segments = join_oldest_segments(segments, count_tokens)
    assert len(joined_segments) == len(segments) - MAX_SEGMENTS // 4
    assert joined_segments[0] == segments[0]
    assert joined_segments[-100:] == tuple(segments[-100:])
    digest = joined_segments[1]
    assert (digest.kind, digest.first_seq, digest.last_seq) == ("digest", 11, 30)
    assert count_tokens(digest.text) <= count_tokens(segments[2].text)
    assert "euros" in digest.text
    assert join_oldest_segments(segments[:MAX_SEGMENTS], count_tokens) == tuple(
        segments[:MAX_SEGMENTS]
    )


@settings(deadline=None, max_examples=150)
@given(st.lists(st.text(max_size=300), min_size=1, max_size=8), st.integers(1, 300), st.text())
def test_any_texts_compose_within_the_room(texts: list[str], space: int, newest: str) -> None:
    segments = [build_segment(index, text) for index, text in enumerate(texts)]
    assert count_tokens(compose(segments, space, newest)) <= max(1, space)


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=2_000))
def test_sentences_are_word_for_word_in_the_text(text: str) -> None:
    for sentence in split_segment(text):
        assert sentence.text in text
        assert sentence.heading in text


def test_sentences_keep_the_marks_of_lists_and_their_headings() -> None:
    text = "Dr. Ada paid 3.50 euros. Ben left!\n## Plans\n- fly to Rome\n1. And back. Yes.\n東京。"
    sentences = split_segment(text)
    assert [(sentence.text, sentence.heading) for sentence in sentences] == [
        ("Dr. Ada paid 3.50 euros.", ""),
        ("Ben left!", ""),
        ("- fly to Rome", "## Plans"),
        ("1. And back.", "## Plans"),
        ("Yes.", "## Plans"),
        ("東京。", "## Plans"),
    ]
    assert join_sentences(sentences) == text
    assert join_sentences(sentences[1:2] + sentences[4:]) == "Ben left!\n## Plans\nYes.\n東京。"
    assert join_sentences(sentences[2:3] + sentences[:1]) == (
        "## Plans\n- fly to Rome\n\nDr. Ada paid 3.50 euros."
    )
    assert join_sentences(split_segment("日本。東京。大阪。")[1:]) == "東京。大阪。"


def build_lines(count: int, characters: int = 100) -> list[NumberedLine]:
    return [NumberedLine(seq, f"{seq:03d}".ljust(characters, "x")) for seq in range(1, count + 1)]


def test_spans_are_as_few_as_the_room_allows_and_about_equally_long() -> None:
    spans = divide_lines(build_lines(20), 700)
    assert [len(span.lines) for span in spans] == [5, 5, 5, 5]
    assert [line for span in spans for line in span.lines] == build_lines(20)


def test_a_message_that_is_too_long_is_a_span_of_its_own() -> None:
    lines = [*build_lines(2), NumberedLine(3, "y" * 5_000), NumberedLine(4, "z")]
    spans = divide_lines(lines, 1_000)
    assert [(span.first_seq, span.last_seq) for span in spans] == [(1, 2), (3, 3), (4, 4)]


def test_no_lines_make_no_span() -> None:
    assert divide_lines([], 100) == []


def plan(lines: list[NumberedLine], segments: list[Segment], request: str = "r") -> list[object]:
    steps = plan_segments(
        lines, segments, compute_fingerprint=partial(mark, request=request), space=10_000
    )
    return [
        (step.first_seq, step.last_seq) if isinstance(step, Span) else step.text for step in steps
    ]


def mark(span: Span, request: str = "r") -> str:
    return repr((request, span.texts))


def freeze(lines: list[NumberedLine], first: int, last: int) -> Segment:
    span = Span(tuple(lines[first - 1 : last]))
    return Segment(
        first_seq=first,
        last_seq=last,
        text=f"segment {first}–{last}",
        fingerprint=mark(span),
    )


def test_segments_serve_again_and_gaps_are_spans() -> None:
    lines = build_lines(20)
    segments = [freeze(lines, 4, 8), freeze(lines, 1, 3), freeze(lines, 12, 15)]
    assert plan(lines, segments) == [
        "segment 1–3",
        "segment 4–8",
        (9, 11),
        "segment 12–15",
        (16, 20),
    ]


def test_of_segments_that_overlap_the_longer_one_that_begins_first_serves() -> None:
    lines = build_lines(10)
    segments = [freeze(lines, 1, 3), freeze(lines, 1, 6), freeze(lines, 5, 8)]
    assert plan(lines, segments) == ["segment 1–6", (7, 10)]


def test_a_segment_of_changed_messages_or_another_request_does_not_serve() -> None:
    lines = build_lines(10)
    segments = [freeze(lines, 1, 5)]
    lines[2] = NumberedLine(3, "changed")
    assert plan(lines, segments) == [(1, 10)]
    assert plan(build_lines(10), segments, "another") == [(1, 10)]
    assert plan(build_lines(10)[:4], segments) == [(1, 4)]

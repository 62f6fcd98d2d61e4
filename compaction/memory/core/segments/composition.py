"""Compose the summary that the model sees of its segments: whole, or by rank where room is short.

Nothing is worded anew. A segment stands whole or loses sentences, and what remains keeps its order:

1. Each segment has one sentence at least, under the numbers of its messages: the outline. Where
   even that is too long, the oldest segments that follow each other share a heading.
2. The newest segment stands whole, and so do those that the newest messages touch, because both
   speak of the same; all of them in half of the room.
3. The rest of the room goes to the sentences of the highest rank.

Before that, open items go whose end a newer segment reports.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import reduce

from compaction.core.outcome import Segment
from compaction.memory.core.segments.outdated import leave_out_done
from compaction.memory.core.segments.ranking import (
    Ranking,
    SegmentSentence,
    join_sentences,
    rank_sentences,
    split_segment,
)
from textkit.calendar import describe_days
from textkit.code_blocks import find_code_blocks

CountTokens = Callable[[str], int]
Days = tuple[date, date] | None

OUTLINE_TOKENS = 32  # of a heading with one sentence
OUTLINE_SHARE = 2  # the outline may take half of the room
WHOLE_SHARE = 2  # segments that stand whole may take half of it
TOUCH_RATIO = 0.3  # of what the newest messages speak of, in a segment that they touch
HEADING_TOKENS = 10  # of the numbers of messages
DAYS_TOKENS = 8  # of their days
TOUCH_SHARE = 4  # of the headings, a quarter at most is for segments that they touch
MAX_SEGMENTS = 200  # more of them are joined, so that composing does not grow with the history
MAX_ATTEMPTS = 4
OMITTED_CODE = "[code left out]"


@dataclass(slots=True)
class _Section:
    """The sentences under one heading, and which of them are selected.

    `costs` are the tokens of each sentence, `heading_costs` those of the lines that they stand
    under. `touch` says how much of what the newest messages speak of stands in it, from 0 to 1.
    """

    first_seq: int
    last_seq: int
    sentences: list[SegmentSentence]
    ranks: list[float]
    costs: list[int]
    heading_costs: dict[str, int]
    touch: float = 0.0
    days: Days = None
    selection: set[int] = field(default_factory=set)
    used_headings: set[str] = field(default_factory=set)

    def join(self, other: "_Section") -> "_Section":
        """Return one section of two that follow each other."""
        return _Section(
            self.first_seq,
            other.last_seq,
            [*self.sentences, *other.sentences],
            [*self.ranks, *other.ranks],
            [*self.costs, *other.costs],
            self.heading_costs | other.heading_costs,
            max(self.touch, other.touch),
            join_days(self.days, other.days),
        )

    def clear(self) -> None:
        """Select nothing."""
        self.selection.clear()
        self.used_headings.clear()

    def measure(self, indexes: Iterable[int]) -> int:
        """Return the tokens that these sentences add, with the headings that they need."""
        new_headings = {self.sentences[index].heading for index in indexes} - self.used_headings
        tokens = sum(self.costs[index] for index in indexes)
        tokens += sum(self.heading_costs[heading] for heading in new_headings)
        if self.selection:
            return tokens
        return tokens + HEADING_TOKENS + (DAYS_TOKENS if self.days else 0)

    def select(self, indexes: Iterable[int]) -> None:
        """Select these sentences."""
        self.selection.update(indexes)
        self.used_headings.update(self.sentences[index].heading for index in indexes)

    def render(self) -> str:
        """Return the selected sentences under their heading."""
        selection = [self.sentences[index] for index in sorted(self.selection)]
        is_whole = len(selection) == len(self.sentences)
        heading = build_heading(self.first_seq, self.last_seq, self.days, is_whole=is_whole)
        return _put_under(heading, join_sentences(selection))


class _Selector:
    """Selects sentences as long as there is room, in tokens."""

    def __init__(self, space: int) -> None:
        self.free_tokens = space

    def select(self, section: _Section, indexes: Iterable[int]) -> int:
        """Select these sentences if all of them fit. Return the tokens that they take, or 0."""
        new_indexes = [index for index in indexes if index not in section.selection]
        tokens = section.measure(new_indexes) if new_indexes else 0
        if tokens > self.free_tokens:
            return 0
        section.select(new_indexes)
        self.free_tokens -= tokens
        return tokens


def build_heading(
    first_seq: int, last_seq: int, days: Days = None, *, is_whole: bool = True
) -> str:
    """Return the numbers of the messages that a section summarizes, and their days."""
    numbers = f"Message {first_seq}"
    if last_seq != first_seq:
        numbers = f"Messages {first_seq}–{last_seq}"
    if days:
        numbers = f"{numbers}, {describe_days(*days)}"
    return f"{numbers}:" if is_whole else f"{numbers} (in part):"


def join_days(older: Days, newer: Days) -> Days:
    """Return the first and the last day of two ranges; a range that is unknown is left out."""
    if not older or not newer:
        return older or newer
    return min(older[0], newer[0]), max(older[1], newer[1])


def compose_summary(
    segments: Sequence[Segment],
    *,
    space: int,
    limit: int,
    count_tokens: CountTokens,
    newest_text: str = "",
) -> str:
    """Return the summary that segments make together, the oldest first.

    It takes at most `space` tokens. A text that a user wrote stands first and whole if it fits
    into the room alone; then the segments have half of the room at least, but all together never
    takes more than `limit` tokens. `newest_text` is what the newest messages say.
    """
    text_segment = segments[0] if segments and segments[0].kind == "text" else None
    span_segments = segments[1:] if text_segment else segments
    text = ""
    segment_space = min(space, limit)
    if text_segment:
        text = shorten_by_rank(text_segment.text, segment_space, count_tokens, newest_text)
        text_tokens = count_tokens(text) + 1
        segment_space = min(max(space - text_tokens, space // 2), limit - text_tokens)
    if not span_segments or segment_space <= 0:
        return text
    span_segments = leave_out_done(span_segments)
    segment_text = _compose_segments(span_segments, segment_space, count_tokens, newest_text)
    return "\n\n".join(part for part in (text, segment_text) if part)


def join_oldest_segments(
    segments: Sequence[Segment], count_tokens: CountTokens
) -> tuple[Segment, ...]:
    """Return the segments; where there are too many, each two of the older half are one digest.

    A digest has the best sentences of the two, and the length of the longer one.
    """
    if len(segments) <= MAX_SEGMENTS:
        return tuple(segments)
    start = 1 if segments[0].kind == "text" else 0
    end = start + (len(segments) - start) // 2 // 2 * 2
    digests = [
        _build_digest(older, newer, count_tokens)
        for older, newer in zip(segments[start:end:2], segments[start + 1 : end : 2], strict=True)
    ]
    return (*segments[:start], *digests, *segments[end:])


def _build_digest(older: Segment, newer: Segment, count_tokens: CountTokens) -> Segment:
    space = max(count_tokens(older.text), count_tokens(newer.text))
    text = shorten_by_rank(f"{older.text}\n{newer.text}", space, count_tokens)
    return Segment(
        first_seq=older.first_seq,
        last_seq=newer.last_seq,
        text=text,
        kind="digest",
        days=join_days(older.days, newer.days),
    )


def _compose_segments(
    segments: Sequence[Segment], space: int, count_tokens: CountTokens, newest_text: str
) -> str:
    whole_text = "\n\n".join(
        _put_under(
            build_heading(segment.first_seq, segment.last_seq, segment.days),
            segment.text.strip("\n"),
        )
        for segment in segments
    )
    if count_tokens(whole_text) <= space:
        return whole_text
    sections = _join_oldest(_build_sections(segments, count_tokens, newest_text), space)
    return _fill_space(sections, space, count_tokens) or _cut_text(
        segments[-1].text.strip("\n"), space, count_tokens
    )


def _build_sections(
    segments: Sequence[Segment], count_tokens: CountTokens, newest_text: str
) -> list[_Section]:
    ranking = Ranking((segment.text for segment in segments), newest_text)
    return [
        _build_section(segment, ranking, count_tokens, recency=position / len(segments))
        for position, segment in enumerate(segments, start=1)
    ]


def _build_section(
    segment: Segment, ranking: Ranking, count_tokens: CountTokens, *, recency: float
) -> _Section:
    sentences = split_segment(segment.text)
    texts = [sentence.text for sentence in sentences]
    headings = {sentence.heading for sentence in sentences}
    return _Section(
        segment.first_seq,
        segment.last_seq,
        sentences,
        ranks=rank_sentences(texts, ranking, recency=recency),
        costs=[count_tokens(text) + 1 for text in texts],
        heading_costs={heading: count_tokens(heading) + 1 for heading in headings} | {"": 0},
        touch=ranking.measure_touch(segment.text),
        days=segment.days,
    )


def _join_oldest(sections: list[_Section], space: int) -> list[_Section]:
    """Return about as many sections as the outline has room for.

    The newest ones stay by themselves, and so do those that the newest messages touch.
    """
    max_count = max(1, space // OUTLINE_SHARE // OUTLINE_TOKENS)
    if len(sections) <= max_count:
        return sections
    single_count = max_count // 2
    older_sections = sections[: len(sections) - single_count]
    touched_sections = _order_by_touch(older_sections)[: max_count // TOUCH_SHARE]
    group_size = -(-len(older_sections) // (max_count - single_count))
    groups: list[list[_Section]] = [[]]
    for section in older_sections:
        is_touched = any(section is touched_section for touched_section in touched_sections)
        if is_touched or len(groups[-1]) == group_size:
            groups.append([])
        groups[-1].append(section)
        if is_touched:
            groups.append([])
    joined_sections = [reduce(_Section.join, group) for group in groups if group]
    return [*joined_sections, *sections[len(older_sections) :]]


def _fill_space(sections: list[_Section], space: int, count_tokens: CountTokens) -> str:
    """Return the sections with the sentences that fit. Empty if not a single one does."""
    target = space
    for _ in range(MAX_ATTEMPTS):
        _select_sentences(sections, target)
        text = "\n\n".join(section.render() for section in sections if section.selection)
        # Counts of parts are rounded, so that the whole may be larger than their sum.
        excess = count_tokens(text) - space if text else 0
        if excess <= 0:
            return text
        target -= excess + 1
    return ""


def _select_sentences(sections: list[_Section], space: int) -> None:
    selector = _Selector(space)
    for section in sections:
        section.clear()
    for section in reversed(sections):
        if section.ranks:
            selector.select(section, [section.ranks.index(max(section.ranks))])
    whole_space = space // WHOLE_SHARE
    for section in [sections[-1], *_order_by_touch(sections[:-1])]:
        indexes = range(len(section.sentences))
        if section.measure(set(indexes) - section.selection) <= whole_space:
            whole_space -= selector.select(section, indexes)
    candidates = [
        (rank, position, index)
        for position, section in enumerate(sections)
        for index, rank in enumerate(section.ranks)
    ]
    for _, position, index in sorted(candidates, reverse=True):
        selector.select(sections[position], [index])


def _order_by_touch(sections: Iterable[_Section]) -> list[_Section]:
    """Return the sections that the newest messages touch; those that they touch most are first."""
    touched_sections = [section for section in sections if section.touch >= TOUCH_RATIO]
    return sorted(touched_sections, key=lambda section: (-section.touch, -section.last_seq))


def shorten_by_rank(text: str, space: int, count_tokens: CountTokens, newest_text: str = "") -> str:
    """Return a text, without the sentences of the lowest rank where it does not fit."""
    if count_tokens(text) <= space:
        return text
    ranking = Ranking([sentence.text for sentence in split_segment(text)], newest_text)
    segment = Segment(first_seq=0, last_seq=0, text=text)
    section = _build_section(segment, ranking, count_tokens, recency=1)
    target = space
    for _ in range(MAX_ATTEMPTS):
        _select_sentences([section], target)
        shorter_text = join_sentences(
            [section.sentences[index] for index in sorted(section.selection)]
        )
        excess = count_tokens(shorter_text) - space
        if shorter_text and excess <= 0:
            return shorter_text
        target -= max(1, excess + 1)
    return _cut_text(text, space, count_tokens)


def _cut_text(text: str, space: int, count_tokens: CountTokens) -> str:
    """Return the beginning of a text that fits, without half of a block of code."""
    end = len(text)
    while end > 1 and count_tokens(text[:end]) > space:
        end = max(1, end * 4 // 5)
    for block in find_code_blocks(text):
        if block.start < end < block.end:
            end = block.start
    return text[:end].rstrip() or (OMITTED_CODE if text.strip() else "")


def _put_under(heading: str, text: str) -> str:
    separator = "\n" if "\n" in text else " "
    return f"{heading}{separator}{text}"

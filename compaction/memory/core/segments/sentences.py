"""Divide a segment into sentences that can be left out one by one, and join those that stay.

Where a sentence ends is what the checks of summaries say, too. In addition, each one knows its line
and the heading that it stands under.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textkit.sentences import split_sentences

PART_CHARS = 400  # a longer sentence is divided between words


@dataclass(frozen=True, slots=True)
class SegmentSentence:
    """A sentence of a segment, word for word, or a part of a very long one.

    `heading` is the line that it stands under. `gap` stands before it: a line break, a space, or
    nothing, as in Chinese. The mark of a list belongs to the sentence that it begins.
    """

    text: str
    heading: str = ""
    gap: str = " "


def split_segment(text: str) -> list[SegmentSentence]:
    """Return the sentences of a segment in order. A heading without sentences is left out."""
    sentences: list[SegmentSentence] = []
    heading = ""
    end = 0
    for sentence in split_sentences(text):
        gap = text[end : sentence.start]
        end = sentence.end
        if sentence.is_heading:
            heading = sentence.text
            continue
        begins_line = not sentences or "\n" in gap
        mark = gap.rpartition("\n")[2].lstrip() if begins_line else ""
        is_spaced = text[sentence.start : sentence.end][:1].isspace()
        first_gap = "\n" if begins_line else " " * is_spaced
        sentences += [
            SegmentSentence(part, heading, " " if index else first_gap)
            for index, part in enumerate(_split_long(f"{mark}{sentence.text}"))
        ]
    return sentences


def join_sentences(sentences: Sequence[SegmentSentence]) -> str:
    """Return the text of sentences, each on its line and under its heading.

    An empty line ends what stands under a heading, where no other heading follows.
    """
    parts: list[str] = []
    heading = ""
    for sentence in sentences:
        gap = sentence.gap
        if sentence.heading != heading:
            heading = sentence.heading
            gap = "\n"
            parts.append(f"\n{heading}")
        parts.append(f"{gap}{sentence.text}")
    return "".join(parts).strip()


def _split_long(text: str) -> Iterator[str]:
    while len(text) > PART_CHARS:
        end = text.rfind(" ", PART_CHARS // 2, PART_CHARS)
        end = end if end > 0 else PART_CHARS
        yield text[:end]
        text = text[end:].lstrip()
    if text:
        yield text

"""Cut the best place out of a text: a snippet for people, a passage for a model."""

import re
from collections.abc import Sequence

from chatcore.search.matching import PASSAGE_CHARS

SNIPPET_CHARS = 240
SENTENCE_SLACK = 200  # characters that a passage gives up to begin or end with a sentence
_SENTENCE_END = re.compile(r"[.!?…:;]['\"”’)\]]*\s+|\n+|[。！？]")
_SPACES = re.compile(r"\s+")


def cut_snippet(
    text: str, start: int, marks: Sequence[tuple[int, int]]
) -> tuple[str, list[tuple[int, int]]]:
    """Return SNIPPET_CHARS of the text around a place on one line, and the marks within it.

    The place is the first mark from `start` on. An ellipsis marks an end that was cut.
    """
    first_mark = next(
        (mark for mark in marks if mark[0] >= start), marks[0] if marks else (start, start)
    )
    begin = max(0, first_mark[0] - SNIPPET_CHARS // 3)
    end = begin + SNIPPET_CHARS
    pieces = ["…"] if begin else []
    chars = len(pieces)
    snippet_marks = []
    position = begin
    text_end = min(end, len(text))
    for mark_start, mark_end in _merge_marks(marks):
        if mark_start < position or mark_end > text_end:
            continue
        before = _SPACES.sub(" ", text[position:mark_start])
        word = _SPACES.sub(" ", text[mark_start:mark_end])
        snippet_marks.append((chars + len(before), chars + len(before) + len(word)))
        pieces += (before, word)
        chars += len(before) + len(word)
        position = mark_end
    pieces.append(_SPACES.sub(" ", text[position:text_end]))
    if end < len(text):
        pieces.append("…")
    return "".join(pieces), snippet_marks


def cut_passage(text: str, start: int, max_chars: int = PASSAGE_CHARS) -> str:
    """Return at most `max_chars` of the text from about `start` on, in whole sentences."""
    if len(text) <= max_chars:
        return text.strip()
    begin = _find_sentence_start(text, min(start, len(text) - 1))
    passage = text[begin : begin + max_chars]
    if begin + max_chars < len(text):
        ends = [match.end() for match in _SENTENCE_END.finditer(passage)]
        last_end = ends[-1] if ends else passage.rfind(" ") + 1
        if last_end > max_chars - SENTENCE_SLACK:
            passage = passage[:last_end]
    return passage.strip()


def _find_sentence_start(text: str, start: int) -> int:
    """Return where the sentence begins that a place is in, unless that is far before."""
    earliest = max(0, start - SENTENCE_SLACK)
    ends = [match.end() for match in _SENTENCE_END.finditer(text, earliest, start)]
    if ends:
        return ends[-1]
    return earliest if not earliest else text.rfind(" ", 0, start) + 1


def _merge_marks(marks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the marks in order, without those that begin inside another."""
    separate_marks: list[tuple[int, int]] = []
    for mark in sorted(marks):
        if not separate_marks or mark[0] >= separate_marks[-1][1]:
            separate_marks.append(mark)
    return separate_marks

"""Divide a summary into sentences, each with its place in the text, and those into clauses."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from textkit.calendar import MONTHS
from textkit.code_blocks import find_code_blocks

_BULLET = re.compile(r"\s*(?:[-*•–+]|\(?\d{1,3}[.)])\s+")
_HEADING = re.compile(r"\s*+(?:#{1,6}\s.*|[*_]{2}[^*_\n]{1,80}[*_]{2}:?|[^:.!?\n]{1,60}:)\s*\Z")
_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+(?=\s++[\"'“„«(\[*_]*+[A-ZÄÖÜÀ-Þ0-9])|[。！？]+|;(?=\s)"
)
_DAY = re.compile(r"(?:\A|\D)\d{1,2}\Z")  # in German a full stop stands behind it
_MONTH = re.compile(rf"(?:{'|'.join(MONTHS)})\b", re.IGNORECASE)
_CLOSING = frozenset("\"'”“»’)]*_")
_ANY_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”“»’)\]*_]*+(?=\s|\Z)|[。！？]+")
# A sentence may end with these, so it goes on behind them with a small letter or a digit only.
_LAST_ABBREVIATION = re.compile(
    r"\b(?:[ap]\.m|etc|usw|inc|ltd|co|corp|e\.?g|i\.?e|u\.s|u\.k|ph\.d|incl|excl|dept|est|ext|fig"
    r"|vol|resp|ggf|vgl|bspw|zzgl|abzgl|mind|std|sek|mio|mrd|geb|sog|kap|aufl|mwst|o\.ä|s\.o|z)\Z",
    re.IGNORECASE,
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Za-zÄÖÜ]|[ez]\.\s?[gB]|i\.\s?e|d\.\s?h|u\.\s?a|Dr|Mr|Mrs|Ms|Prof|St|No|Nr|vs|etc|"
    r"ca|approx|bzw|usw|inkl|evtl|Abs|Art|Str|Tel|Hr|Fr|max|min|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|"
    r"Oct|Okt|Nov|Dec|Dez)|"
    # In German a full stop makes an ordinal of a number.
    r"(?:\b(?:am|vom|zum|bis|dem|der|den|die|das|ab|im|jeden)|–|-)\s?\d{1,2})\Z"
)
# What a clause goes on behind, in any case of its letters.
_TITLE = re.compile(
    r"\b(?:dr|mr|mrs|ms|prof|st|hr|fr|nr|vs|ca|approx|bzw|e\.g|i\.e|z\.\s?b|d\.\s?h|u\.\s?a|"
    r"(?:am|vom|zum|bis|dem|der|den|die|das|ab|im|jeden)\s\d{1,2})\Z",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"[;:!?()\n—]+|\s–\s|\.(?=\s|\Z)|"
    r"(?:,|(?<!\s))\s++(?=(?:but|although|though|because|whereas|while|instead|"
    r"aber|sondern|obwohl|weil|während|stattdessen|jedoch|doch)\b)|"
    r",\s*(?=(?:use|not|never|always|only|please|do|don['’]t|let['’]?s?|so|then|and|"
    r"nutze|nimm|nicht|nie|immer|nur|bitte|dann|und|we|i|he|she|they|it|ich|wir|er|sie|es)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a summary. A heading says nothing that could be true or false."""

    text: str
    start: int
    end: int
    is_heading: bool
    is_item: bool
    """Whether it is all there is in an item of a list."""
    is_code: bool = False
    """Whether it is a whole block of code, with its marks and its indentation."""


def split_sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text, in order, without the marks of lists.

    A block of code is one sentence.
    """
    sentences: list[Sentence] = []
    offset = 0
    for block in find_code_blocks(text):
        sentences += _split_lines(text[offset : block.start], offset)
        code = text[block.start : block.end]
        sentences.append(Sentence(code, block.start, block.end, False, False, is_code=True))
        offset = block.end
    return [*sentences, *_split_lines(text[offset:], offset)]


def _split_lines(text: str, offset: int) -> Iterator[Sentence]:
    for line in text.splitlines(keepends=True):
        yield from _split_line(line, offset)
        offset += len(line)


def split_clauses(text: str) -> list[str]:
    """Return the parts of a text that say one thing each."""
    clauses: list[str] = []
    start = 0
    for match in _CLAUSE_END.finditer(text):
        before = text[start : match.start()]
        if match[0] == "." and _TITLE.search(before):
            continue  # "Never write to Mr. Dunmore."
        clauses.append(before)
        start = match.end()
    clauses.append(text[start:])
    return [clause for clause in clauses if clause and not clause.isspace()]


def _split_line(line: str, offset: int) -> Iterator[Sentence]:
    bullet = _BULLET.match(line)
    start = bullet.end() if bullet else 0
    body = line[start:].rstrip()
    if not body.strip():
        return
    if _HEADING.match(body) and not bullet:
        yield Sentence(body.strip(), offset + start, offset + start + len(body), True, False)
        return
    pieces = list(split_line(body))
    for first, last in pieces:
        text = body[first:last].strip()
        if text:
            is_item = bullet is not None and len(pieces) == 1
            yield Sentence(text, offset + start + first, offset + start + last, False, is_item)


def split_line(body: str, *, is_careless: bool = False) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of a line begins and ends.

    In the text of a careless writer a sentence may also begin with a small letter.
    """
    first = 0
    for match in (_ANY_END if is_careless else _END).finditer(body):
        is_dot = match[0].startswith(".")
        if is_dot and _ABBREVIATION.search(body, first, match.start()):
            continue
        if is_careless and _goes_on(body, match):
            continue
        yield first, match.end()
        first = match.end()
    if first < len(body):
        yield first, len(body)


def _goes_on(text: str, mark: re.Match[str]) -> bool:
    """Return whether a sentence goes on behind a quotation, three dots or an abbreviation."""
    following = text[mark.end() : mark.end() + 20].lstrip()
    if mark[0] == ".":
        before = text[max(0, mark.start() - 20) : mark.start()]
        if _TITLE.search(before) or (_DAY.search(before) and _MONTH.match(following)):
            return True
        return not following[:1].isupper() and bool(_LAST_ABBREVIATION.search(before))
    return following[:1].islower() and (mark[0][-1] in _CLOSING or mark[0].startswith(".."))

"""Split a paragraph into sentences and, where they are too long, into clauses."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from compaction.memory.core.ledger.languages import LANGUAGES
from compaction.memory.core.ledger.lines import LINE_CHARS
from compaction.memory.core.ledger.paragraphs import Origin, Paragraph, split_paragraphs
from textkit.calendar import MONTHS

FILLER = "□"  # stands in place of every character of a quotation
QUOTE_CHARS = 600  # a longer quotation is not recognized as one

_ABBREVIATIONS = frozenset().union(*(each.abbreviations for each in LANGUAGES))
_LAST_ABBREVIATIONS = frozenset(
    {"etc", "usw", "inc", "ltd", "co", "corp", "a.m", "p.m", "am", "pm"}
)
_MONTHS = re.compile(rf"(?:{'|'.join(MONTHS)})\b", re.IGNORECASE)
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”“»’)\]*_]*+(?=\s|$)|[。！？]+")
_WORD_BEFORE = re.compile(r"[^\s(\"'„“»]{1,30}$")
_DATE_WORD = re.compile(r"(?:\b(?:am|vom|zum|bis|dem|der|den|die|das|ab|im|jeden|und|\.) ?|^|–|-)$")
_QUOTATION = re.compile(
    rf"\"[^\"]{{2,{QUOTE_CHARS}}}\"|[“„][^”“„]{{2,{QUOTE_CHARS}}}[”“]|«[^«»]{{2,{QUOTE_CHARS}}}»"
    rf"|»[^«»]{{2,{QUOTE_CHARS}}}«|‘[^’‘]{{2,{QUOTE_CHARS}}}’|`[^`]{{1,200}}`"
    rf"|(?<!\w)'[^']{{2,{QUOTE_CHARS}}}'(?!\w)"
)
_QUOTE_MARKS = frozenset("\"“„”«»‘`'")
_CLOSING_MARKS = frozenset("\"'”“»’)]*_")
_LETTER_NOUN = re.compile(
    r"(?:plan|option|variante?|vitamin|typ|type|class|group|gruppe|block|gate) $"
)
_CLAUSE_END = re.compile(
    r"; |: | [–—-] |, (?=(?:and|but|so|or|because|while|whereas|und|aber|oder|denn|sondern|weil"
    r"|then|dann|also|which|please|bitte)\b)|, | (?=(?:and|but|und|aber)\b )"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """A sentence as it stands in the message, and `words`, the same without its quotations.

    `words` is as long as the text, in lower case, with straight apostrophes.
    """

    text: str
    words: str
    origin: Origin

    @property
    def is_question(self) -> bool:
        """Whether it ends in a question mark."""
        return self.text.rstrip("\"'”“»’)]* ").endswith(("?", "？"))


def split_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a message that are its writer's own, or of settings and letters."""
    for paragraph in split_paragraphs(text):
        yield from _split_paragraph(paragraph)


def _split_paragraph(paragraph: Paragraph) -> Iterator[Sentence]:
    text = paragraph.text
    masked_text = mask_quotations(text)
    start = 0
    for match in _END.finditer(masked_text):
        if _is_end(masked_text, match, start):
            yield from _build_sentences(text, masked_text, start, match.end(), paragraph.origin)
            start = match.end()
    yield from _build_sentences(text, masked_text, start, len(text), paragraph.origin)


def _build_sentences(
    text: str, masked_text: str, start: int, end: int, origin: Origin
) -> Iterator[Sentence]:
    """Yield one sentence, or the clauses of one that is longer than a line may be."""
    for clause_start, clause_end in _cut_clauses(masked_text, start, end):
        clause = text[clause_start:clause_end]
        stripped_clause = clause.strip()
        if len(stripped_clause) > 1:
            offset = clause_start + len(clause) - len(clause.lstrip())
            words = masked_text[offset : offset + len(stripped_clause)].replace("’", "'")
            yield Sentence(text=stripped_clause, words=_lower(words), origin=origin)


def _lower(text: str) -> str:
    """Return the text in lower case and of the same length."""
    lower_text = text.lower()
    if len(lower_text) == len(text):
        return lower_text
    return "".join(
        lower if len(lower := character.lower()) == 1 else character for character in text
    )


def mask_quotations(text: str) -> str:
    """Return the text, of the same length, with a filler in place of what is quoted.

    The last mark within a quotation stays, so that its sentence ends where it did.
    """
    if _QUOTE_MARKS.isdisjoint(text):
        return text
    return _QUOTATION.sub(_fill_quotation, text)


def _fill_quotation(match: re.Match[str]) -> str:
    quotation = match.group()
    if quotation[-2] in ".!?":
        return quotation[0] + FILLER * (len(quotation) - 3) + quotation[-2:]
    return quotation[0] + FILLER * (len(quotation) - 2) + quotation[-1]


def _is_end(text: str, match: re.Match[str], start: int) -> bool:
    """Return whether a mark ends a sentence; a full stop may belong to an abbreviation."""
    following_text = text[match.end() : match.end() + 20].lstrip()
    if not following_text:
        return True
    mark = match.group()
    if mark[-1] in _CLOSING_MARKS and following_text[0].islower():
        return False  # the sentence goes on behind what it quotes
    if mark[0] != ".":
        return True
    if mark.startswith(".."):
        return not following_text[0].islower()
    word = _WORD_BEFORE.search(text, max(start, match.start() - 30), match.start())
    if word is None or len(mark) > 1:
        return True
    return _ends_after_word(
        word.group(), following_text, text[max(start, word.start() - 10) : word.start()]
    )


def _ends_after_word(word: str, following_text: str, text_before: str) -> bool:
    """Return whether a full stop after this word ends a sentence."""
    plain_word = word.lower()
    if plain_word.isdigit():
        if len(word) > 2:
            return True
        if not text_before.strip():  # a list's number
            return False
        is_ordinal = bool(_MONTHS.match(following_text) or _DATE_WORD.search(text_before.lower()))
        return not is_ordinal
    if plain_word in _ABBREVIATIONS:
        is_last = plain_word in _LAST_ABBREVIATIONS and following_text[0].isupper()
        return is_last and not text_before.rstrip().endswith(("e.g.", "i.e."))
    if len(word) == 1 and word.isalpha():
        return bool(_LETTER_NOUN.search(text_before.lower()))
    return True


def _cut_clauses(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of the clauses of a text, each at most as long as a line.

    Only a text that is longer is cut. One without any clause is cut between words.
    """
    while end - start > LINE_CHARS:
        cut = 0
        for match in _CLAUSE_END.finditer(text, start + 1, start + LINE_CHARS):
            cut = match.end()
        if not cut:
            cut = text.rfind(" ", start + 1, start + LINE_CHARS) + 1
        if not cut:
            cut = text.find(" ", start + LINE_CHARS, end) + 1
            if not cut:
                return  # one word that is longer than a line
            start = cut
            continue
        yield start, cut
        start = cut
    yield start, end

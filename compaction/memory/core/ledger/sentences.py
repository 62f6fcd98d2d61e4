"""Split a message into paragraphs, sentences and clauses, and tell whose words they are.

It separates a user's own words from code, logs and quotations.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compaction.memory.core.ledger.languages import LANGUAGES
from compaction.memory.core.ledger.lines import LINE_CHARS
from textkit.sentences import split_line

# own: the writer's words. listed: an item under a title such as "Ground rules:". foreign: words
# of someone else, or a short block of settings. Code, logs, tables and quotations are left out.
Origin = Literal["own", "listed", "foreign"]

WRAP_CHARS = 50  # a line as long as this may go on in the next line
FENCE_LINES = 15  # a fenced block of more lines is code; a shorter one may show settings
TITLE_CHARS = 160  # a longer line that ends in a colon is no title

_LIST_TITLE = re.compile("|".join(each.list_titles for each in LANGUAGES))
_FOREIGN_TITLE = re.compile("|".join(each.foreign_titles for each in LANGUAGES))
_FENCE = re.compile(r"\s*+(?:```|~~~)")
_ITEM = re.compile(r"\s{0,12}(?:[-*•‣–—+]|\(?\d{1,2}[.)]|[a-z]\))\s+(?=\S)")
_FOREIGN_START = re.compile(
    r"\s*+(?:-{3,} ?(?:original|forwarded|ursprüngliche|weitergeleitete)|(?:from|von|sent|gesendet"
    r"|to|an|subject|betreff): .{1,200}$)",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r'\s*+(?:[-=*_]{3,}|"""|\'\'\')\s*$')
_NO_PROSE = re.compile(
    r"""
    \s*+(?:
      >                                                  # a quotation
    | \|.*\|\s*$                                         # a table
    | [$%]\s\S | >>>\s | In\s\[\d                        # a shell
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?\S*\]?[ ,;]+\S*[ \[]*(?:[A-Z]{4,8}\b|\[|\w+\.\w+)
    | \[?\d\d:\d\d:\d\d[^ ]*\]?\s+\S                     # logs
    | \[?(?:INFO|DEBUG|WARN(?:ING)?|ERROR|FATAL|TRACE|CRITICAL)\b[\]:\s]
    | Traceback\b | File\s" | at\s[\w.$<>]+\( | @@\s | diff\s--git | [+-]{3}\s\S
    | (?:import|from)\s[\w.]+(?:\s(?:import|as)\b.*)?;?$ | def\s\w+\( | class\s\w+[(:]
    | (?:const|let|var|public|private|static|async|export|func|fn)\s\w+[\w\s<>\[\]]{0,40}[=({:]
    | (?:if|for|while|switch|return|elif|else|try|except|catch)\b.{0,120}[{:;(]\s*$
    | function\b.{0,80}[{(] | \#include\b | //\s | /\*|\*/|\*\s.{0,80}\*/ | <[/!?a-zA-Z][^>]{0,200}>
    | (?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH)\s.{0,200}\b(?:FROM|INTO|SET|TABLE|AS)\b
    | [{}()\[\];,]+\s*$
    | .{0,400}(?:;|\{|\}|=>|\)\s*->.{0,60}:|\($)\s*$     # the end of a line of code
    | [\w.\[\]"']{1,60}\s(?:=|\+=|:=|==)\s               # an assignment
    )
    """,
    re.VERBOSE,
)
_WRAPPED_END = re.compile(r"[^.!?:;…。！？]$")
_SPACES = re.compile(r"[ \t\r\f\v\u00a0\u2000-\u200b\u202f]+")
_LABEL = re.compile(r"""\s*+[-*]?\s*+["']?[\w][\w .-]{0,40}["']?\s?(?::\s|=(?=\S))\S""")

FILLER = "□"  # stands in place of every character of a quotation
QUOTE_CHARS = 600  # a longer quotation is not recognized as one

_QUOTATION = re.compile(
    rf"\"[^\"]{{2,{QUOTE_CHARS}}}\"|[“„][^”“„]{{2,{QUOTE_CHARS}}}[”“]|«[^«»]{{2,{QUOTE_CHARS}}}»"
    rf"|»[^«»]{{2,{QUOTE_CHARS}}}«|‘[^’‘]{{2,{QUOTE_CHARS}}}’|`[^`]{{1,200}}`"
    rf"|(?<!\w)'[^']{{2,{QUOTE_CHARS}}}'(?!\w)"
)
_QUOTE_MARKS = frozenset("\"“„”«»‘`'")
_CLAUSE_END = re.compile(
    r"; |: | [–—-] |, (?=(?:and|but|so|or|because|while|whereas|und|aber|oder|denn|sondern|weil"
    r"|then|dann|also|which|please|bitte)\b)|, | (?=(?:and|but|und|aber)\b )"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Paragraph:
    """A piece of a message without line breaks, single spaces between its words."""

    text: str
    origin: Origin


@dataclass(slots=True)
class _Reader:
    """What a reader of lines has to remember from the lines before."""

    parts: list[str]
    in_list: bool = False  # a title of a list of rules stands above
    in_foreign_text: bool = False  # the words of someone else have begun
    origin: Origin = "own"

    def take(self) -> Iterator[Paragraph]:
        """Yield the paragraph that was read so far, and begin anew."""
        if self.parts:
            yield Paragraph(text=" ".join(self.parts), origin=self.origin)
            self.parts = []


def split_paragraphs(text: str) -> Iterator[Paragraph]:
    """Yield what a user wrote, without code, logs, tables and quotations.

    A line of a wrapped text is joined with the next one. Nothing is raised on any text.
    """
    reader = _Reader(parts=[])
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        line = lines[index]
        if "`" in line or "~" in line:
            end = _find_fence_end(lines, index)
            if end is not None:
                yield from reader.take()
                yield from _read_fence(lines[index + 1 : end])
                index = end + 1
                continue
        yield from _read_line(line, reader)
        index += 1
    yield from reader.take()


def _find_fence_end(lines: list[str], start: int) -> int | None:
    """Return the index of the line that closes a fence which opens at `start`."""
    if not _FENCE.match(lines[start]):
        return None
    fence = lines[start].strip()[:3]
    if fence in lines[start].strip()[3:]:
        return start  # opened and closed in one line
    for index in range(start + 1, len(lines)):
        if lines[index].lstrip().startswith(fence):
            return index
    return len(lines) - 1


def _read_fence(lines: list[str]) -> Iterator[Paragraph]:
    """Yield the labelled lines of a short block; a long one is code."""
    if len(lines) <= FENCE_LINES:
        for line in lines:
            if len(line) <= TITLE_CHARS and _LABEL.match(line):
                yield Paragraph(text=_SPACES.sub(" ", line).strip(), origin="foreign")


def _read_line(line: str, reader: _Reader) -> Iterator[Paragraph]:
    """Yield the paragraphs that end before or with this line."""
    stripped_line = _SPACES.sub(" ", line).strip()
    if not stripped_line or _SEPARATOR.match(stripped_line):
        yield from reader.take()
        if stripped_line:
            reader.in_list = reader.in_foreign_text = False
        return
    if _FOREIGN_START.match(stripped_line):
        yield from reader.take()
        reader.in_foreign_text = True
        return
    if _NO_PROSE.match(line):
        yield from reader.take()
        return
    item = _ITEM.match(line)
    if item:
        yield from reader.take()
        body = _SPACES.sub(" ", line[item.end() :]).strip()
        is_item = reader.in_list and not reader.in_foreign_text
        reader.origin = _find_origin(reader, is_item=is_item)
        reader.parts = [body]
    elif reader.parts and _continues(reader.parts[-1], stripped_line):
        reader.parts.append(stripped_line)
    else:
        yield from reader.take()
        reader.in_list = False
        reader.origin = _find_origin(reader, is_item=False)
        reader.parts = [stripped_line]
    if stripped_line.endswith(":") and len(stripped_line) <= TITLE_CHARS:
        _note_title(stripped_line.lower(), reader)
    elif stripped_line.startswith("#"):
        reader.in_list = bool(_LIST_TITLE.search(stripped_line.lower()))


def _find_origin(reader: _Reader, *, is_item: bool) -> Origin:
    if reader.in_foreign_text:
        return "foreign"
    return "listed" if is_item else "own"


def _continues(previous_line: str, line: str) -> bool:
    """Return whether a line goes on with the sentence of the line above it."""
    return (
        len(previous_line) >= WRAP_CHARS
        and bool(_WRAPPED_END.search(previous_line))
        and (line[0].islower() or line[0].isdigit() or line[0] in "(\"'„“`/")
    )


def _note_title(title: str, reader: _Reader) -> None:
    """Remember what a line that ends in a colon announces."""
    if _LIST_TITLE.search(title):
        reader.in_list = True
    elif _FOREIGN_TITLE.search(title):
        reader.in_foreign_text = True


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
    for start, end in split_line(masked_text, is_careless=True):
        yield from _build_sentences(text, masked_text, start, end, paragraph.origin)


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

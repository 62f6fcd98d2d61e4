"""What a summary model marks as lasting: read its block, and check that the user said it.

A mark quotes. The line that is kept is the message's own sentence in which the quoted words stand,
so a model can choose among sentences and invent none.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast, get_args

from compaction.memory.core.ledger.keys import build_sentence_key
from compaction.memory.core.ledger.lines import (
    KINDS,
    LINE_CHARS,
    Holds,
    Kind,
    LedgerLine,
    name_place,
)
from compaction.memory.core.ledger.sentences import FILLER, Sentence, split_sentences
from compaction.memory.core.ledger.values import find_values

MAX_MARKS = 60  # of one block; a broken model may repeat itself without end
MIN_QUOTE = 6  # characters without white space; fewer stand anywhere
MIN_FOREIGN_QUOTE = 3  # of a script whose words have few characters
MAX_SENTENCES = 3  # that one quotation may touch
# A model that quotes so much of what was not said, or marks nearly everything, cannot do it.
MIN_WRONG = 3
WRONG_SHARE = 0.5
MIN_MARKED = 12
MARKED_SHARE = 0.7

_FENCE = re.compile(r"(?<!`)```[ \t]*+([\w-]*+)[^\n`]*+\n(.*?)(?:```|\Z)", re.DOTALL)
_OBJECT = re.compile(r'^[ \t]*+(?:\[\s*+)?\{\s*+"(?:said|ended)"', re.MULTILINE)
_QUOTE_EDGES = " \t\n\"'“”„«»‘’`.…"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """One object of the block. `number` is of the noted line that the words replace or end.

    Without `said` the noted line was never meant to last. `applies` are the user's words that let
    a quotation, a pasted text or a tool's result hold.
    """

    said: str
    kind: Kind
    holds: Holds
    number: int | None
    applies: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceText:
    """A message of the user or a tool that a summary covers."""

    seq: int
    role: str
    text: str


@dataclass(slots=True)
class Reading:
    """What is kept of a model's marks.

    `unmeant_numbers` are those of noted lines that were never meant to last. `wrong_count` counts
    quotations that nobody said, `refused_count` those of somebody else's words.
    """

    lines: list[LedgerLine] = field(default_factory=list)
    unmeant_numbers: list[int] = field(default_factory=list)
    mark_count: int = 0
    wrong_count: int = 0
    refused_count: int = 0
    sentence_count: int = 0

    @property
    def is_able(self) -> bool:
        """Return False if the model's marks show that it cannot do it."""
        if self.wrong_count >= MIN_WRONG and self.wrong_count > self.mark_count * WRONG_SHARE:
            return False
        marked_count = len({(line.seq, line.text) for line in self.lines})
        return marked_count < MIN_MARKED or marked_count <= self.sentence_count * MARKED_SHARE


def split_block(text: str) -> tuple[str, str | None]:
    """Return an answer without its block of marks, and the block; None if there is none."""
    for match in reversed(list(_FENCE.finditer(text))):
        if match[1].lower() == "lasting" or _OBJECT.match(match[2].lstrip()):
            return (text[: match.start()] + text[match.end() :]).strip(), match[2]
    bare_block = _OBJECT.search(text)
    if bare_block:
        return text[: bare_block.start()].strip(), text[bare_block.start() :]
    return text, None


def parse_marks(block: str) -> list[Mark]:
    """Return the marks of a block; what cannot be read is left out."""
    return [mark for value in _list_objects(block) if (mark := _parse_mark(value))][:MAX_MARKS]


def _list_objects(block: str) -> Iterator[Mapping[str, object]]:
    values: list[object] = []
    for line in [block] if block.lstrip().startswith("[") else block.splitlines():
        try:
            value = json.loads(line.strip().rstrip(","), strict=False)
        except (ValueError, RecursionError):
            continue
        values += value if isinstance(value, list) else [value]
    yield from (value for value in values if isinstance(value, Mapping))


def _parse_mark(value: Mapping[str, object]) -> Mark | None:
    ended = _parse_number(value.get("ended"))
    said = _parse_text(value.get("said"))
    if not said and ended is None:
        return None
    kind, until = value.get("kind"), value.get("until")
    return Mark(
        said=said,
        kind=kind if kind in KINDS else "fact",
        # Words that only end a line are no line themselves.
        holds="answer" if ended else cast(Holds, until) if until in get_args(Holds) else "always",
        number=ended or _parse_number(value.get("replaces")),
        applies=_parse_text(value.get("applies")),
    )


def _parse_number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _parse_text(value: object) -> str:
    return value.strip(_QUOTE_EDGES) if isinstance(value, str) else ""


def check_marks(
    marks: Iterable[Mark], messages: Sequence[SourceText], noted_lines: Sequence[LedgerLine]
) -> Reading:
    """Return what the user said of a model's marks.

    `messages` are those that the model has read, and `noted_lines` the lines that it was shown with
    their numbers, which begin with 1.
    """
    said_texts = _SaidTexts(messages)
    reading = Reading(sentence_count=said_texts.sentence_count)
    seqs = {message.seq for message in messages}
    for mark in marks:
        reading.mark_count += 1
        noted_line = _find_noted_line(mark.number, noted_lines)
        if not mark.said:
            if noted_line and noted_line.seq in seqs and not noted_line.pinned and mark.number:
                reading.unmeant_numbers.append(mark.number)
            continue
        found_lines = said_texts.find_lines(mark.said) or said_texts.find_applied(mark)
        if not found_lines:
            reading.refused_count += said_texts.is_elsewhere(mark.said)
            reading.wrong_count += not said_texts.is_elsewhere(mark.said)
            continue
        if mark.number and noted_line is None:
            continue  # it ends or replaces what does not exist
        reading.lines += _build_lines(mark, found_lines, noted_line)
    return reading


def _find_noted_line(number: int | None, lines: Sequence[LedgerLine]) -> LedgerLine | None:
    return lines[number - 1] if number and number <= len(lines) else None


def _build_lines(
    mark: Mark, found_lines: Sequence[LedgerLine], noted_line: LedgerLine | None
) -> Iterator[LedgerLine]:
    for line in found_lines:
        is_same = noted_line and (noted_line.seq, noted_line.text) == (line.seq, line.text)
        replaces = ""
        if noted_line and not is_same and noted_line.seq <= line.seq:
            replaces = name_place(noted_line)
        yield LedgerLine(
            kind=mark.kind,
            text=line.text,
            seq=line.seq,
            role=line.role,
            key=line.key,
            holds=mark.holds,
            replaces=replaces,
        )


@dataclass(frozen=True, slots=True)
class _OwnText:
    """The user's own sentences of a message, and where each begins in their joined words.

    `words` has no white space and no case; `mask` marks in it what is quoted.
    """

    seq: int
    sentences: Sequence[Sentence]
    starts: Sequence[int]
    words: str
    mask: str


class _SaidTexts:
    """The messages of a summary, in which the words of marks are looked for."""

    def __init__(self, messages: Sequence[SourceText]) -> None:
        self._messages = messages
        # What is said again holds from then on, so the newest message comes first.
        self._own_texts = [_read_own_text(each) for each in messages[::-1] if each.role == "user"]
        self.sentence_count = sum(len(each.sentences) for each in self._own_texts)

    def find_lines(self, quotation: str) -> list[LedgerLine]:
        """Return the sentences in which the user says these words; none for a quotation."""
        words = _compact(quotation)
        if not _is_long_enough(words):
            return []
        for own_text in self._own_texts:
            start = own_text.words.find(words)
            while start >= 0:
                end = start + len(words)
                if _says_something(own_text.words[start:end], own_text.mask[start:end]):
                    return _list_touched(own_text, start, end)
                start = own_text.words.find(words, start + 1)
        return []

    def find_applied(self, mark: Mark) -> list[LedgerLine]:
        """Return the lines of a quoted or pasted text that the user's own words let hold."""
        words = _compact(mark.said)
        if not mark.applies or not _is_long_enough(words) or not self.find_lines(mark.applies):
            return []
        for message in self._messages[::-1]:
            text = _find_line_of_text(message.text, words)
            if text:
                key = " ".join(text.lower().split())[:80]
                return [
                    LedgerLine(
                        kind=mark.kind, text=text, seq=message.seq, role=message.role, key=key
                    )
                ]
        return []

    def is_elsewhere(self, quotation: str) -> bool:
        """Return whether the words stand in a message, although the user does not say them."""
        words = _compact(quotation)
        return any(words in _compact(message.text) for message in self._messages)


def _read_own_text(message: SourceText) -> _OwnText:
    sentences = [each for each in split_sentences(message.text) if each.origin != "foreign"]
    starts: list[int] = []
    words: list[str] = []
    mask: list[str] = []
    size = 0
    for sentence in sentences:
        starts.append(size)
        for character, masked in zip(sentence.text, sentence.words, strict=True):
            folded = _compact(character)
            words.append(folded)
            mask.append((FILLER if masked == FILLER else " ") * len(folded))
            size += len(folded)
    return _OwnText(message.seq, sentences, starts, "".join(words), "".join(mask))


def _compact(text: str) -> str:
    return "".join(text.casefold().replace("’", "'").split())


def _is_long_enough(words: str) -> bool:
    return len(words) >= (MIN_QUOTE if words.isascii() else MIN_FOREIGN_QUOTE)


def _says_something(words: str, mask: str) -> bool:
    """Return whether any letter or digit of the words stands outside of a quotation."""
    pairs = zip(words, mask, strict=True)
    return any(letter.isalnum() and masked != FILLER for letter, masked in pairs)


def _list_touched(own_text: _OwnText, start: int, end: int) -> list[LedgerLine]:
    ends = [*own_text.starts[1:], len(own_text.words)]
    touched = [
        sentence
        for sentence, first, last in zip(own_text.sentences, own_text.starts, ends, strict=True)
        if first < end and last > start and len(sentence.text) <= LINE_CHARS
    ]
    if len(touched) > MAX_SENTENCES:
        return []
    return [
        LedgerLine(
            kind="fact",
            text=sentence.text,
            seq=own_text.seq,
            role="user",
            key=build_sentence_key(sentence, find_values(sentence.text)),
        )
        for sentence in touched
    ]


def _find_line_of_text(text: str, words: str) -> str:
    """Return the line of a text in which these words stand, else the words as they stand there."""
    for line in text.splitlines():
        line_text = " ".join(line.split())
        if words in _compact(line_text) and len(line_text) <= LINE_CHARS:
            return line_text
    return ""

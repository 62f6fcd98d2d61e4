"""Recognize the lines of the ledger in a message, without a model."""

import re
from collections.abc import Iterator, Sequence

from compaction.memory.core.ledger.corrections import find_change
from compaction.memory.core.ledger.keys import build_sentence_key, build_value_key, names_its_noun
from compaction.memory.core.ledger.languages import LANGUAGES
from compaction.memory.core.ledger.languages.orders import is_order
from compaction.memory.core.ledger.lines import (
    CHANGE_KEY,
    KEY_CHARS,
    KINDS,
    LINE_CHARS,
    Kind,
    LedgerLine,
)
from compaction.memory.core.ledger.sentences import Sentence, split_sentences
from compaction.memory.core.ledger.values import (
    Value,
    find_quoted,
    find_values,
)
from textkit.credentials import PLACEHOLDER, remove_credentials

MESSAGE_LINES = 200  # the most lines of one message
TOOL_CHARS = 1_500  # a longer tool result is a document, of which no values are taken
TOOL_LINES = 12  # the most lines of one tool result
ABSENCE_WORDS = 4  # the fewest words of a sentence that says what is not so
SENTENCE_STARTS = 24  # the most places of a sentence where an order is looked for
MIN_CHARS = 6  # a shorter sentence says nothing that could be remembered

_RULE_STARTS = re.compile("|".join(each.rule_starts for each in LANGUAGES))
_CUES: dict[Kind, re.Pattern[str]] = {
    kind: re.compile("|".join(each.cues[kind] for each in LANGUAGES)) for kind in LANGUAGES[0].cues
}
_ONE_OFF = re.compile("|".join(each.one_off for each in LANGUAGES))
_ASKS_FOR_ACTION = re.compile(
    r"\b(?:can|could|would|will) you\b|\b(?:kannst|könntest|würdest|magst) du\b"
    r"|\b(?:please|bitte)\b"
)
_STARTERS = frozenset().union(*(each.starters for each in LANGUAGES))
_REQUEST = re.compile("|".join(each.requests for each in LANGUAGES))
_FEELING = re.compile("|".join(each.feelings for each in LANGUAGES))
_NEGATIONS = frozenset().union(*(each.negations for each in LANGUAGES))
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_REPORT = re.compile("|".join(each.reports for each in LANGUAGES))
_CLAUSE_START = re.compile(r"[,;:.!?()–—-] ?|((?<![^\W\d_])[^\W\d_]++)(?: |(?=,))")
_GIVING_WORD = re.compile(
    r"(?:\b(?:is|are|called|named|titled|use|reads|says|spelled|to|as|ist|heißt|lautet"
    r"|namens|genannt"
    r"|auf|mit)|[:=])(?: (?:now|jetzt|nun|currently|about|only|just|nur))? ?$"
)
_LABEL = re.compile(r"""[-*"' ]{0,4}[^\W\d_][\w .-]{0,40}["']?\s?[:=]\s?(?P<value>\S.{0,200})$""")


def recognize_lines(text: str, *, role: str, seq: int) -> tuple[LedgerLine, ...]:
    """Return the lines of a message, in their order; nothing is raised on any text.

    Of a user's message these are rules, preferences, decisions, commitments and exact values. Of
    a tool's result they are values that stand in a short, labelled form (`key: value`, `"key":
    value`), and only if the result is short: a long one is a document, and what a user takes from
    it is recognized in that user's own message. Every other role says nothing binding.
    """
    if role == "tool":
        return tuple(_recognize_labels(text, seq=seq))
    if role != "user":
        return ()
    lines: list[LedgerLine] = []
    value_count = 0
    for sentence in split_sentences(text):
        if not MIN_CHARS <= len(sentence.text) <= LINE_CHARS:
            continue
        values = find_values(sentence.text)
        kind = find_kind(sentence)
        if kind is not None:
            key = build_sentence_key(sentence, values)
            lines.append(LedgerLine(kind=kind, text=sentence.text, seq=seq, role=role, key=key))
        elif not values and states_absence(sentence):
            key = build_sentence_key(sentence, values)
            lines.append(LedgerLine(kind="value", text=sentence.text, seq=seq, role=role, key=key))
        if value_count < MESSAGE_LINES:
            value_lines = _build_value_lines(sentence, values, seq=seq)
            value_count += len(value_lines)
            lines.extend(value_lines)
        if sentence.origin == "own" and not (lines and lines[-1].text == sentence.text):
            lines.extend(_build_change_line(sentence, values, seq=seq))
    return tuple(_limit_lines(lines))


def _build_change_line(
    sentence: Sentence, values: Sequence[Value], *, seq: int
) -> Iterator[LedgerLine]:
    """Yield a line for a sentence that is none otherwise and takes something back."""
    change = find_change(sentence.text)
    if change and (change == "forgetting" or not sentence.is_question):
        key = f"{CHANGE_KEY} {build_sentence_key(sentence, values)}"[:KEY_CHARS]
        yield LedgerLine(kind="decision", text=sentence.text, seq=seq, role="user", key=key)


def _limit_lines(lines: list[LedgerLine]) -> list[LedgerLine]:
    """Return as many lines as a message may have, in their order: rules before values."""
    if len(lines) <= MESSAGE_LINES:
        return lines
    places = sorted(range(len(lines)), key=lambda place: (KINDS.index(lines[place].kind), place))
    return [lines[place] for place in sorted(places[:MESSAGE_LINES])]


def find_kind(sentence: Sentence) -> Kind | None:
    """Return what a sentence is: the first of KINDS of which it has a cue, or None.

    The words of someone else are none of the kinds, nor is what is asked for once, or a question
    that asks for nothing.
    """
    if sentence.origin == "foreign":
        return None
    if sentence.origin == "listed":
        return "rule"
    words = sentence.words
    if (sentence.is_question and not _REQUEST.search(words)) or _ONE_OFF.search(words):
        return None
    starts = (_RULE_STARTS.match(words, start) for start in find_clause_starts(words))
    match = next((match for match in starts if match), None)
    if match and not _REPORT.search(words, 0, match.end()):
        return "rule"
    for kind, cue in _CUES.items():
        match = cue.search(words)
        if match and not _REPORT.search(words, 0, match.end()):
            return kind
    is_plain_order = not sentence.is_question and not _REPORT.search(words) and is_order(words)
    return "rule" if is_plain_order else None


def find_clause_starts(words: str) -> list[int]:
    """Return where an order may begin: first of all, behind a mark, behind "please" or "and"."""
    later_starts = [
        match.end()
        for match in _CLAUSE_START.finditer(words)
        if match[1] is None or match[1] in _STARTERS
    ]
    return [0, *later_starts[: SENTENCE_STARTS - 1]]


def states_absence(sentence: Sentence) -> bool:
    """Return whether a sentence says that something is not so: "the contract is not notarized".

    A summary easily loses a negation. What a user does not know, like or find is none.
    """
    words = frozenset(_WORD.findall(sentence.words))
    return (
        sentence.origin == "own"
        and len(words) >= ABSENCE_WORDS
        and not _NEGATIONS.isdisjoint(words)
        and not sentence.is_question
        and not _FEELING.search(sentence.words)
    )


def _build_value_lines(
    sentence: Sentence, values: Sequence[Value], *, seq: int
) -> list[LedgerLine]:
    """Return a line for each thing that the sentence gives a value."""
    collected_values = _collect_values(sentence, values)
    keys = dict.fromkeys(_find_key(sentence, value, collected_values) for value in collected_values)
    return [
        LedgerLine(kind="value", text=sentence.text, seq=seq, role="user", key=key) for key in keys
    ]


def _collect_values(sentence: Sentence, values: Sequence[Value]) -> list[Value]:
    """Return the values of a sentence that are worth a line, in their order."""
    if sentence.is_question and not _ASKS_FOR_ACTION.search(sentence.words):
        values = [value for value in values if value.category in {"address", "identifier"}]
    collected_values = [
        value for value in values if not value.is_digit or _is_given(sentence, value)
    ]
    collected_values.extend(
        value for value in find_quoted(sentence.text) if _is_given(sentence, value)
    )
    return sorted(collected_values, key=lambda value: value.start)


def _is_given(sentence: Sentence, value: Value) -> bool:
    """Return whether the words before a value give it to something: "is", "called", a colon."""
    if _GIVING_WORD.search(sentence.words, max(0, value.start - 20), value.start):
        return True
    return value.form == "plain" and names_its_noun(sentence, value)


def _find_key(sentence: Sentence, value: Value, values: Sequence[Value]) -> str:
    """Return a value's key. One that a question or a letter names is about itself only."""
    if not sentence.is_question and sentence.origin == "own":
        key = build_value_key(sentence, value, values)
        if key:
            return key
    return value.text.lower()


def _recognize_labels(text: str, *, seq: int) -> Iterator[LedgerLine]:
    """Yield the labelled values of a short tool result."""
    if len(text) > TOOL_CHARS:
        return
    count = 0
    for line in remove_credentials(text).splitlines():
        stripped_line = " ".join(line.split()).rstrip(",")
        match = _LABEL.match(stripped_line)
        if match is None or PLACEHOLDER in line or count == TOOL_LINES:
            continue
        if not find_values(match["value"]):
            continue
        count += 1
        label = stripped_line[: match.start("value")].strip(" -*\"':=").lower()
        yield LedgerLine(kind="value", text=stripped_line, seq=seq, role="tool", key=label)

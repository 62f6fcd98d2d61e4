"""Read a question in ordinary words: its terms, quoted phrases, who spoke and when.

Times are words too: "yesterday", "in March", "letzte Woche".
"""

import calendar
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import NamedTuple

from chatcore.base.truncation import clean_text
from chatcore.search.answer_kinds import find_answer_pattern
from textkit.calendar import MONTH_NAMES, WEEKDAY_NAMES
from textkit.stems import SIGNS, fold_case, list_stems
from textkit.stop_words import STOP_WORDS

_DAYS_AGO = {"today": 0, "heute": 0, "yesterday": 1, "gestern": 1, "vorgestern": 2}
_UNIT_DAYS = {"day": 1, "tag": 1, "week": 7, "woche": 7, "month": 30, "monat": 30}

_DAY = re.compile(rf"\b({'|'.join(_DAYS_AGO)})\b")
_RELATIVE = re.compile(
    r"\b(this|last|past|diese[nrsm]?|letzte[nrsm]?|vorige[nrsm]?|vergangene[nrsm]?)\s+"
    r"(week|month|year|woche|monat|jahr)\b"
)
_AGO = re.compile(
    r"\b(\d{1,3}|an?|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago\b"
    r"|\bvor\s+(\d{1,3}|eine[mr]|zwei|drei|vier|fünf|sechs)\s+(tag|woche|monat|jahr)(?:en|n|e)?\b"
)

_MONTH = re.compile(rf"\b({'|'.join(MONTH_NAMES)})\b(?:\s+(?:of\s+)?((?:19|20)\d\d))?")
_NOT_MONTH = re.compile(r"\b(?:i|you|he|she|it|we|they|that|this|who)\s+may\b|\bmay\s+(?:i|be)\b")
_WEEKDAY = re.compile(rf"\b({'|'.join(WEEKDAY_NAMES)})\b")
_DATE = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b|\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b")

MAX_QUESTION_CHARS = 2_000
MAX_TERMS = 32
MAX_TERM_CHARS = 64
MAX_PHRASES = 4
GRAM_CHARS = 2

WORD = re.compile(rf"[^\W_]+(?:[{SIGNS}]+[^\W_]*)*")
_SIGN = re.compile(f"[{SIGNS}]+")
# Scripts that separate no words, or write particles without a space: kana, Han, Hangul, Thai.
UNSPACED_RANGES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f"
_UNSPACED_RUN = re.compile(f"[{UNSPACED_RANGES}]+")
_HIRAGANA = re.compile("[\u3040-\u309f]+")  # mostly endings and particles
_PHRASE = re.compile(r'"([^"]+)"|“([^“”]+)”|„([^„“”]+)[“”]|«([^«»]+)»')
_OUTER_MARKS = "\"'“”„«»‘’`´.,;:!?()[]{}<>…*|·。、，！？：；「」『』（）《》"
_SINGLE_LETTER = re.compile(r"[a-z]")
_ASKS_FOR_USER = re.compile(
    r"\b(?:(?:did|do|have|had|was|am) i|i (?:say|said|tell|told|mention(?:ed)?|want(?:ed)?)|my|mine"
    r"|(?:habe?|hatte|bin|war) ich|ich|mein\w*)\b",
    re.IGNORECASE,
)
_ASKS_FOR_ASSISTANT = re.compile(
    r"\b(?:(?:did|have|had|do) you|you (?:say|said|tell|told|mention(?:ed)?|recommend(?:ed)?"
    r"|suggest(?:ed)?)|your|(?:hast|hattest) du|haben sie|dein\w*)\b",
    re.IGNORECASE,
)


_UNIT_DAYS |= {"year": 365, "jahr": 365}


_NUMBERS = {
    number: value
    for value, names in enumerate(
        ("a an one einem einer", "two zwei", "three drei", "four vier", "five fünf", "six sechs"), 1
    )
    for number in names.split()
}


class Period(NamedTuple):
    """A time from `start` to before `end`."""

    start: datetime
    end: datetime


def find_periods(text: str, now: datetime) -> tuple[Period, ...]:
    """Return the periods before `now` that a text names, in its order of kinds."""
    lower_text = text.lower()
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (
        *_find_days(lower_text, midnight),
        *_find_relative_periods(lower_text, midnight),
        *_find_distances(lower_text, midnight),
        *_find_months(lower_text, midnight),
        *_find_dates(lower_text),
    )


def _find_days(text: str, midnight: datetime) -> Iterator[Period]:
    for match in _DAY.finditer(text):
        days_ago = _DAYS_AGO[match[1]]
        is_day_before = match[1] == "yesterday" and "day before yesterday" in text
        yield _build_days(midnight - timedelta(days=days_ago + is_day_before))
    for match in _WEEKDAY.finditer(text):
        days_ago = (midnight.weekday() - WEEKDAY_NAMES[match[1]]) % 7 or 7
        yield _build_days(midnight - timedelta(days=days_ago))


def _find_relative_periods(text: str, midnight: datetime) -> Iterator[Period]:
    for match in _RELATIVE.finditer(text):
        units_ago = 0 if match[1].startswith(("this", "diese")) else 1
        if match[2] in ("week", "woche"):
            monday = midnight - timedelta(days=midnight.weekday() + 7 * units_ago)
            yield _build_days(monday, 7)
        elif match[2] in ("month", "monat"):
            months = midnight.year * 12 + midnight.month - 1 - units_ago
            yield _build_month(months // 12, months % 12 + 1)
        else:
            yield _build_year(midnight.year - units_ago)


def _find_distances(text: str, midnight: datetime) -> Iterator[Period]:
    for match in _AGO.finditer(text):
        number, unit = match[1] or match[3], match[2] or match[4]
        count = int(number) if number.isdigit() else _NUMBERS[number]
        unit_days = _UNIT_DAYS[unit]
        # "Three weeks ago" may be half a week more or less.
        margin = unit_days // 2
        start = midnight - timedelta(days=count * unit_days + margin)
        yield _build_days(start, 2 * margin + 1)


def _find_months(text: str, midnight: datetime) -> Iterator[Period]:
    for match in _MONTH.finditer(text):
        if match[1] == "may" and _NOT_MONTH.search(text):
            continue
        month = MONTH_NAMES[match[1]]
        is_later = month > midnight.month
        yield _build_month(int(match[2]) if match[2] else midnight.year - is_later, month)


def _find_dates(text: str) -> Iterator[Period]:
    for match in _DATE.finditer(text):
        if match[1]:
            year, month, day = int(match[1]), int(match[2]), int(match[3])
        else:
            year, month, day = int(match[6]), int(match[5]), int(match[4])
        if 1 <= year < datetime.max.year and 1 <= month <= 12 and _has_day(year, month, day):
            yield _build_days(datetime(year, month, day, tzinfo=UTC))


def _has_day(year: int, month: int, day: int) -> bool:
    return 1 <= day <= calendar.monthrange(year, month)[1]


def _build_days(start: datetime, days: int = 1) -> Period:
    return Period(start, start + timedelta(days=days))


def _build_month(year: int, month: int) -> Period:
    return _build_days(datetime(year, month, 1, tzinfo=UTC), calendar.monthrange(year, month)[1])


def _build_year(year: int) -> Period:
    return Period(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))


class Kind(Enum):
    """How a term is looked for."""

    WORD = "word"  # by its stems
    LITERAL = "literal"  # as it stands: identifiers, paths, numbers with signs
    GRAM = "gram"  # two characters of a script without spaces


@dataclass(frozen=True, kw_only=True)
class Term:
    """What a message may hold of a question.

    `spelling` is as it was written, and `text` is folded as `fold_case` does.
    """

    kind: Kind
    spelling: str
    text: str

    @property
    def stems(self) -> tuple[str, ...]:
        """The stems of a word."""
        return list_stems(self.text)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, read.

    `phrases` are quoted: a message must hold them as they stand. `role` is that of the messages
    that the question asks for, if it says so, and `periods` the times that it names. `answer` is
    the pattern of what it asks for, as a date or a number.
    """

    terms: tuple[Term, ...]
    phrases: tuple[str, ...] = ()
    role: str | None = None
    periods: tuple[Period, ...] = ()
    answer: re.Pattern[str] | None = None


def read_question(text: str, now: datetime) -> Question:
    """Return the terms and hints of a question.

    Stop words are left out unless nothing else is in it. A question without a word has the terms
    that stand between its spaces, as `%`.
    """
    question_text = clean_text(text.replace("\x00", " "))[:MAX_QUESTION_CHARS]
    question_text = unicodedata.normalize("NFC", question_text)
    phrases = [
        " ".join(next(filter(None, groups)).split()) for groups in _PHRASE.findall(question_text)
    ]
    return Question(
        terms=tuple(_list_terms(question_text)[:MAX_TERMS]),
        phrases=tuple(phrase for phrase in phrases if phrase)[:MAX_PHRASES],
        role=_find_role(question_text),
        periods=find_periods(question_text, now),
        answer=find_answer_pattern(fold_case(question_text)),
    )


def split_grams(run: str) -> list[str]:
    """Return the pairs of neighbouring characters of a run without spaces; one character stays."""
    if len(run) < GRAM_CHARS:
        return [run]
    return [run[start : start + GRAM_CHARS] for start in range(len(run) - GRAM_CHARS + 1)]


def _list_terms(text: str) -> list[Term]:
    words = WORD.findall(_UNSPACED_RUN.sub(" ", text))
    informative_words = [word for word in words if not _is_stop_word(fold_case(word))]
    grams = list(_list_grams(text))
    pieces = text.split()
    literals = [piece for piece in pieces if _is_literal(piece.strip(_OUTER_MARKS))]
    if not (words or grams):
        literals = pieces
    return [
        *_build_terms(Kind.LITERAL, (piece.strip(_OUTER_MARKS) or piece for piece in literals)),
        *_build_terms(Kind.WORD, informative_words or ([] if grams or literals else words)),
        *_build_terms(Kind.GRAM, grams),
    ]


def _list_grams(text: str) -> Iterator[str]:
    grams = [gram for run in _UNSPACED_RUN.findall(text) for gram in split_grams(run)]
    informative_grams = [gram for gram in grams if not _HIRAGANA.fullmatch(gram)]
    yield from informative_grams or grams


def _is_stop_word(word: str) -> bool:
    return word in STOP_WORDS or bool(_SINGLE_LETTER.fullmatch(word))


def _is_literal(piece: str) -> bool:
    """Return True for a piece such as `parse_http_header`, `src/app.py`, `1,250.00` or `C++`."""
    has_sign = re.search(r"[^\w'’\-]|_|\d-|-\d", _SIGN.sub("", piece)) is not None
    return has_sign and bool(WORD.search(piece)) and not _UNSPACED_RUN.search(piece)


def _build_terms(kind: Kind, spellings: Iterable[str]) -> list[Term]:
    terms = {}
    for spelling in spellings:
        text = fold_case(spelling)[:MAX_TERM_CHARS]
        terms[text] = Term(kind=kind, spelling=spelling[:MAX_TERM_CHARS], text=text)
    return list(terms.values())


def _find_role(text: str) -> str | None:
    """Return `user` or `assistant` if the question asks for what one of them said."""
    asks_for_user = bool(_ASKS_FOR_USER.search(text))
    asks_for_assistant = bool(_ASKS_FOR_ASSISTANT.search(text))
    if asks_for_user == asks_for_assistant:
        return None
    return "user" if asks_for_user else "assistant"

"""Read a question in ordinary words: its terms, quoted phrases, who spoke and when."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from chatcore.base.truncation import clean_text
from chatcore.search.answer_kinds import find_answer_pattern
from chatcore.search.periods import Period, find_periods
from textkit.stems import fold_case, list_stems
from textkit.stop_words import STOP_WORDS

MAX_QUESTION_CHARS = 2_000
MAX_TERMS = 32
MAX_TERM_CHARS = 64
MAX_PHRASES = 4
GRAM_CHARS = 2

WORD = re.compile(r"[^\W_]+")
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
    has_sign = re.search(r"[^\w'’\-]|_|\d-|-\d", piece) is not None
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

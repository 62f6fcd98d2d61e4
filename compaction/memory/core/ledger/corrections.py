"""Tie what a user takes back to what it is about: corrections to lines, and what to forget.

Nothing of this is stored. It follows from the lines that there are, so a line whose correction is
deleted or dropped holds again, and so does what was forgotten.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from compaction.memory.core.ledger.forgetting import find_request
from compaction.memory.core.ledger.keys import says_nothing
from compaction.memory.core.ledger.languages.changes import (
    CORRECTIONS,
    FORGETTING,
    PRONOUNS,
    TURNS,
)
from compaction.memory.core.ledger.languages.other_forgetting import OTHER_FORGETTING
from compaction.memory.core.ledger.lines import (
    CHANGE_KEY,
    LedgerLine,
    name_place,
    normalize_text,
)
from compaction.memory.core.ledger.sentences import mask_quotations
from compaction.memory.core.ledger.values import CACHED_SENTENCES, find_values
from compaction.memory.core.verify.numbers import NUMBER_WORDS
from textkit.stems import fold_letters, list_pairs, list_stems, stem_word

NEAR_MESSAGES = 8  # a correction without a word of its subject is about what was said so recently
MIN_SUBJECT_WORDS = 2  # a correction with fewer is used only where it names what it corrects
SUBJECT_SHARE = 0.5  # of the words of what is to be forgotten: a line about it has more of them

Place = tuple[int, str]  # a sentence: the number of its message, and its text in one form
Change = Literal["correction", "turn", "forgetting", ""]

_WORD = re.compile(r"[^\W\d_][\w'-]*")
_ELISION = re.compile(r"^(?:[cdjlmnst]|qu)'(?=\w{2})")
_CLAUSE_MARK = re.compile(r"[,;–—]\s")
_FORGETTING_WORDS = frozenset(
    fold_letters(word)
    for each in (FORGETTING[code] for code in ("en", "de", "fr", "es"))
    for word in f"{each.forget} {each.erase} {each.small}".split()
) | frozenset(map(fold_letters, NUMBER_WORDS))


@dataclass(frozen=True, slots=True)
class Tie:
    """The line that another one corrects; not `is_certain` if only its place speaks for it."""

    line: LedgerLine
    is_certain: bool


def get_place(line: LedgerLine) -> Place:
    """Return which sentence a line is; one sentence may be several lines."""
    return line.seq, normalize_text(line.text)


@lru_cache(maxsize=CACHED_SENTENCES)
def find_change(text: str) -> Change:
    """Return how a sentence takes something back; empty if it does not."""
    words = mask_quotations(text).lower().replace("’", "'")
    is_correction = bool(CORRECTIONS.search(words))
    request = find_request(words)
    if request and (request.is_of_memory or not is_correction) and not _gives_value(text):
        return "forgetting"
    if is_correction:
        return "correction"
    return "turn" if TURNS.search(words) else ""


def _gives_value(text: str) -> bool:
    """Return whether a request gives another value: "Forget 8080, use 9090"."""
    return any(_CLAUSE_MARK.search(text, 0, each.start) for each in find_values(text))


def tie_corrections(lines: Iterable[LedgerLine]) -> dict[Place, Tie]:
    """Return what each correction among these lines corrects, by the place of the correction.

    Where the summary model named the line, it is that one. Else it is the line with the most words
    of the correction's subject, then one with a value of the same form or category, then the
    newest. Without such words it is near by: one with such a value or, if the sentence says that
    something was wrong, what was said last.
    """
    ties: dict[Place, Tie] = {}
    earlier_lines: list[LedgerLine] = []
    for line in _list_sentences(lines):
        replaced_line = _find_replaced_line(line, earlier_lines) if line.replaces else None
        if replaced_line:
            ties[get_place(line)] = Tie(replaced_line, is_certain=True)
        elif find_change(line.text) in {"correction", "turn"}:
            tie = _find_corrected_line(line, _list_since_repeated(line, earlier_lines))
            if tie:
                ties[get_place(line)] = tie
        earlier_lines.append(line)
    return ties


def _find_replaced_line(line: LedgerLine, lines: Iterable[LedgerLine]) -> LedgerLine | None:
    return next((other for other in lines if name_place(other) == line.replaces), None)


def drop_untied(
    lines: Sequence[LedgerLine], earlier_lines: Sequence[LedgerLine]
) -> list[LedgerLine]:
    """Return the lines without those that only take something back, and of which nothing is known.

    "I am late again" and "No, thanks" change no line, and a ledger is no place for them.
    """
    kept_lines = list(lines)
    while True:
        ties = tie_corrections([*earlier_lines, *kept_lines])
        tied_lines = [line for line in kept_lines if _is_told(line, ties.get(get_place(line)))]
        if len(tied_lines) == len(kept_lines):
            return kept_lines
        kept_lines = tied_lines


def _is_told(line: LedgerLine, tie: Tie | None) -> bool:
    if CHANGE_KEY not in line.key.split() or find_change(line.text) == "forgetting":
        return True
    if tie is None:
        return False
    return tie.is_certain or len(list_subject(line.text)) >= MIN_SUBJECT_WORDS


def find_forgotten(lines: Iterable[LedgerLine]) -> dict[Place, int]:
    """Return the sentences that the user wants forgotten, with the number of that message.

    Lines that a user wrote or pinned are kept; only the user removes them.
    """
    forgotten: dict[Place, int] = {}
    earlier_lines: list[LedgerLine] = []
    for line in _list_sentences(lines):
        if find_change(line.text) == "forgetting":
            for other in _list_lines_about(line, earlier_lines):
                forgotten.setdefault(get_place(other), line.seq)
        earlier_lines.append(line)
    return forgotten


def find_corrected(lines: Iterable[LedgerLine]) -> dict[Place, int]:
    """Return the sentences that later ones correct, with the number of the correction's message."""
    return {get_place(tie.line): seq for (seq, _), tie in tie_corrections(lines).items()}


def add_changes(lines: Sequence[LedgerLine], later_lines: Sequence[LedgerLine]) -> list[LedgerLine]:
    """Return the lines, and those of the later ones that correct or forget one of them."""
    all_lines = [*lines, *later_lines]
    places = {get_place(line) for line in lines}
    forgotten = find_forgotten(all_lines)
    forgetting_seqs = {seq for place, seq in forgotten.items() if place in places}
    changing_places = {
        place for place, tie in tie_corrections(all_lines).items() if get_place(tie.line) in places
    }
    added_lines = [
        line
        for line in later_lines
        if get_place(line) not in places
        and (
            get_place(line) in changing_places
            or (line.seq in forgetting_seqs and find_change(line.text) == "forgetting")
        )
    ]
    return [*lines, *added_lines]


def _list_sentences(lines: Iterable[LedgerLine]) -> list[LedgerLine]:
    """Return the sentences of the user that are not dropped, each once, in their order."""
    sentences = {
        get_place(line): line
        for line in sorted(lines, key=lambda line: bool(line.replaces))
        if line.seq and line.role == "user" and line.status != "dropped"
    }
    return sorted(sentences.values(), key=lambda line: line.seq)


def _list_since_repeated(line: LedgerLine, earlier_lines: list[LedgerLine]) -> list[LedgerLine]:
    """Return what was said since the same sentence was: a repeated one corrects nothing before."""
    text = normalize_text(line.text)
    for place in range(len(earlier_lines) - 1, -1, -1):
        if normalize_text(earlier_lines[place].text) == text:
            return earlier_lines[place + 1 :]
    return earlier_lines


def _find_corrected_line(line: LedgerLine, earlier_lines: Sequence[LedgerLine]) -> Tie | None:
    stems = list_subject(line.text)
    best_line, best_rank = None, (0, 0, 0)
    for other in earlier_lines:
        is_near = line.seq - other.seq <= NEAR_MESSAGES
        # "Not 4471, 4417": the former value names what it is about as well as a word does.
        shared = len(stems & list_subject(other.text)) + _count_shared_values(line.text, other.text)
        likeness = _compare_values(line.text, other.text)
        rank = (shared, likeness, other.seq)
        if (shared or (is_near and likeness)) and rank >= best_rank:
            best_line, best_rank = other, rank
    if best_line and (best_rank[0] or find_change(line.text) == "correction"):
        return Tie(best_line, is_certain=True)
    if find_change(line.text) == "correction" and earlier_lines:
        last_line = earlier_lines[-1]
        if line.seq - last_line.seq <= NEAR_MESSAGES:
            return Tie(last_line, is_certain=False)
    return None


def _list_lines_about(line: LedgerLine, lines: Sequence[LedgerLine]) -> list[LedgerLine]:
    stems = list_request_subject(line.text)
    if not stems:  # "Forget that."
        near_seqs = [other.seq for other in lines if line.seq - other.seq <= NEAR_MESSAGES]
        last_seq = max((seq for seq in near_seqs if seq < line.seq), default=0)
        return [other for other in lines if other.seq == last_seq and not other.pinned]
    language = find_language(line.text)
    shared_counts = [len(stems & list_things(other.text, language)) for other in lines]
    most = max(shared_counts, default=0)
    chosen_lines: list[LedgerLine] = []
    for other, shared in zip(lines, shared_counts, strict=True):
        # "My mother's phone": what is about another phone stays.
        is_about = shared == most and shared > len(stems) * SUBJECT_SHARE
        follows = bool(chosen_lines) and chosen_lines[-1].seq == other.seq
        if is_about or (follows and _begins_with_pronoun(other.text)):
            chosen_lines.append(other)
    return [other for other in chosen_lines if not other.pinned]


def _begins_with_pronoun(text: str) -> bool:
    return text.split(maxsplit=1)[0].lower() in PRONOUNS


@lru_cache(maxsize=CACHED_SENTENCES)
def list_subject(text: str, language: str = "") -> frozenset[str]:
    """Return the stems of the words that say what a sentence is about, without its values."""
    for value in reversed(find_values(text)):
        text = f"{text[: value.start]} {text[value.end :]}"
    if language:
        return _list_other_stems(text.lower(), OTHER_FORGETTING[language].stemmer)
    plain_words = _WORD.findall(fold_letters(text.replace("’", "'")))
    words = (_ELISION.sub("", word.removesuffix("'s")) for word in plain_words)
    return frozenset(
        stem
        for word in words
        if word not in _FORGETTING_WORDS and not says_nothing(word)
        for stem in list_stems(word)[:1]
    )


def _list_other_stems(text: str, stemmer: str) -> frozenset[str]:
    if stemmer:
        return frozenset(stem_word(word, stemmer) for word in _WORD.findall(text))
    return frozenset(list_pairs(text))


def list_things(text: str, language: str = "") -> frozenset[str]:
    """Return the subject of a sentence and its values, as a request to forget may name them."""
    return list_subject(text, language) | list_values(text)


@lru_cache(maxsize=CACHED_SENTENCES)
def find_language(text: str) -> str:
    """Return the language of a request to forget that is compared in a way of its own."""
    request = find_request(mask_quotations(text).lower().replace("’", "'"))
    return request.language if request else ""


@lru_cache(maxsize=CACHED_SENTENCES)
def list_request_subject(text: str) -> frozenset[str]:
    """Return what a request to forget is about; empty for "forget that"."""
    request = find_request(mask_quotations(text).lower().replace("’", "'"))
    if request is None:
        return frozenset()
    if request.language:
        return list_things(request.subject, request.language)
    small_words = {stem for word in request.small_words for stem in list_stems(word)[:1]}
    return (list_subject(request.subject) - small_words) | list_values(text)


def _count_shared_values(text: str, other_text: str) -> int:
    return len(list_values(text) & list_values(other_text))


@lru_cache(maxsize=CACHED_SENTENCES)
def list_values(text: str) -> frozenset[str]:
    """Return the exact values of a sentence, in lower case."""
    return frozenset(value.text.casefold() for value in find_values(text))


def _compare_values(text: str, other_text: str) -> int:
    """Return 2 if both have a value of one form, 1 if both have one of one category, else 0."""
    shared = _list_kinds(text) & _list_kinds(other_text)
    return 2 if any(kind.startswith("form ") for kind in shared) else int(bool(shared))


@lru_cache(maxsize=CACHED_SENTENCES)
def _list_kinds(text: str) -> frozenset[str]:
    values = find_values(text)
    return frozenset(
        kind for value in values for kind in (f"form {value.form}", f"category {value.category}")
    )


def list_older_lines(line: LedgerLine, ties: Mapping[Place, Tie]) -> list[LedgerLine]:
    """Return what a line corrects, and what that line corrected before it, the newest first."""
    older_lines: list[LedgerLine] = []
    tie = ties.get(get_place(line))
    while tie:
        older_lines.append(tie.line)
        tie = ties.get(get_place(tie.line))
    return older_lines

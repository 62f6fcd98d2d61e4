"""Recognize a request to forget, and what it is about, by the words of the user's language."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from compaction.memory.core.ledger.languages.changes import FORGETTING, PRETENDING, ForgetWords
from compaction.memory.core.ledger.languages.other_forgetting import (
    OTHER_FORGETTING,
    find_other_request,
)
from textkit.stems import fold_letters

VERB_CHARS = 4  # of a verb, as it is looked for in a database
MAX_OPENERS = 14  # words before the verb, as "I would like it very much if you could please"

MAX_TAIL = 4  # words between a request's modal verb and the verb at its end, as in German

Table = Mapping[str, frozenset[str]]

_WORD = re.compile(r"[^\W\d_]+")
_TABLES: dict[str, Table] = {
    code: {
        field.name: frozenset(fold_letters(getattr(language, field.name)).split())
        for field in fields(ForgetWords)
    }
    for code, language in FORGETTING.items()
}
_PRETENDING = {code: re.compile(pattern) for code, pattern in PRETENDING.items()}
# What each of these patterns has, as it is looked for in a database.
_PRETENDING_PARTS = frozenset(
    {"pret", "act ", "so, ", "comm", "como", "cuen", "che ", "que ", "also"}
)


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A request to forget. `subject` is the text that says what, with `small_words` in it.

    `is_of_memory` if it speaks of what was said or of what is remembered. `language` is that of a
    subject whose words are compared as `OTHER_FORGETTING` says; else it is empty.
    """

    subject: str
    small_words: frozenset[str]
    is_of_memory: bool
    language: str = ""


def find_request(text: str) -> ForgetRequest | None:
    """Return the request that a sentence in lower case makes, if it is one.

    Only words that ask for something stand before the verb, or the verb is the last word of a
    request, as in German. "I forgot" and "do not forget" are no requests.
    """
    matches = list(_WORD.finditer(text))
    words = [fold_letters(match[0]) for match in matches]
    is_question = text.rstrip().endswith("?")
    for code, table in _TABLES.items():
        if pretending := _PRETENDING[code].search(text):
            small_words = table["small"] | table["told"] | table["speaker"]
            return ForgetRequest(text[pretending.end() :], small_words, is_of_memory=True)
        index = _find_verb(words, table, is_question=is_question)
        if index is None:
            continue
        small_words = table["small"] | table["told"] | table["openers"] | table["listener"]
        is_last = index == len(words) - 1
        return ForgetRequest(
            text[: matches[index].start()] if is_last else text[matches[index].end() :],
            small_words | table["speaker"],
            is_of_memory=not table["told"].isdisjoint(words),
        )
    other = find_other_request(text)
    if other is None:
        return None
    return ForgetRequest(other.subject, frozenset(), other.is_of_memory, other.language)


def list_verb_parts() -> list[str]:
    """Return what the text of each request has in it: the beginnings of the verbs.

    A database may compare other than ASCII letters by case.
    """
    verbs = {
        verb
        for language in FORGETTING.values()
        for verb in f"{language.forget} {language.erase} {language.keep}".split()
    }
    other_parts = {part for each in OTHER_FORGETTING.values() for part in each.parts.split()}
    return sorted({verb[:VERB_CHARS] for verb in verbs} | _PRETENDING_PARTS | other_parts)


def _find_verb(words: Sequence[str], table: Table, *, is_question: bool) -> int | None:
    """Return the place of the verb of a request."""
    asking_words = table["openers"] | table["speaker"] | table["listener"] | table["negations"]
    for index, word in enumerate(words[: MAX_OPENERS + 1]):
        before = words[:index]
        is_negated = not table["negations"].isdisjoint(before)
        if word in table["forget"]:
            is_verb = not is_negated and table["negations"].isdisjoint(words[index + 1 : index + 3])
        elif word in table["erase"]:
            is_verb = not is_negated and not table["told"].isdisjoint(words)
        elif word in table["keep"]:
            # "Ne garde rien de …"; "you can't keep the dog" asks for nothing.
            is_negated |= "ne" in before and "rien" in words[index + 1 : index + 3]
            is_verb = is_negated and not is_question and "can" not in before
        else:
            is_verb = False
        if is_verb:
            return index if _asks_listener(before, table) else None
        if word not in asking_words:
            break
    if not words or words[-1] not in table["forget"]:
        return None
    # "Das darfst du nicht vergessen" and "das kann man vergessen" are none.
    if not table["negations"].isdisjoint(words) or table["listener"].isdisjoint(words[:-1]):
        return None
    # "The matter with my doctor you can forget."
    tail = words[-1 - MAX_TAIL : -1]
    is_told = (
        not is_question
        and table["speaker"].isdisjoint(words)
        and not table["listener"].isdisjoint(tail)
        and not table["openers"].isdisjoint(tail)
    )
    return len(words) - 1 if is_told or words[0] in asking_words else None


def _asks_listener(words: Sequence[str], table: Table) -> bool:
    return table["speaker"].isdisjoint(words) or not table["listener"].isdisjoint(words)

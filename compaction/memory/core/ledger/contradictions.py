"""Find where a summary gives a former value to a thing whose value the ledger knows."""

import re
from collections.abc import Iterable

from compaction.memory.core.ledger.corrections import list_things
from compaction.memory.core.ledger.lines import LedgerLine
from compaction.memory.core.ledger.values import find_values

_KEY_SUFFIX = re.compile(r"\(\w+\)$")

MIN_KEY_WORDS = 2  # fewer may be about anything

Value = tuple[str, str]  # its category, and its text in one form


class CurrentValues:
    """The exact values of the ledger and their former ones, by the words that they belong to."""

    def __init__(self, lines: Iterable[LedgerLine]) -> None:
        self._current_values: dict[frozenset[str], set[Value]] = {}
        self._former_values: dict[frozenset[str], set[Value]] = {}
        for line in lines:
            words = list_things(_KEY_SUFFIX.sub("", line.key))
            if line.kind == "value" and line.status != "dropped" and len(words) >= MIN_KEY_WORDS:
                is_current = line.status == "current"
                values_by_key = self._current_values if is_current else self._former_values
                values_by_key.setdefault(words, set()).update(_list_values(line.text))

    def contradict(self, sentence: str) -> bool:
        """Return whether a sentence gives a former value to a thing, and not the current one.

        It has to have all words of a line's key. What is about something else contradicts nothing.
        """
        if not self._former_values:
            return False
        values = _list_values(sentence)
        words = list_things(sentence) if values else frozenset()
        for key_words, former_values in self._former_values.items():
            current_values = self._current_values.get(key_words, set())
            if not key_words <= words or not values.isdisjoint(current_values):
                continue
            forms = set(map(_get_form, current_values))
            if any(_get_form(value) in forms for value in values & former_values):
                return True
        return False


def _list_values(text: str) -> set[Value]:
    return {(value.category, _normalize_value(value.text)) for value in find_values(text)}


def _get_form(value: Value) -> Value:
    """Return a value without its digits: euros are compared with euros, and ids with ids."""
    category, text = value
    return category, re.sub(r"\d+", "", text)


def _normalize_value(text: str) -> str:
    return re.sub(r"(?<![\s,.'’])[\s,.'’]++(?=\d{3}\b)|\s+", "", text.casefold())

"""Say what a line is about: the noun phrase of a value, the content words of a rule."""

import re
from collections.abc import Sequence

from compaction.memory.core.ledger.languages import LANGUAGES
from compaction.memory.core.ledger.lines import KEY_CHARS
from compaction.memory.core.ledger.sentences import Sentence
from compaction.memory.core.ledger.values import Value
from textkit.stop_words import is_stop_word

KEY_WORDS = 5  # the most words of a value's noun phrase
RULE_WORDS = 12  # the most words of a rule's key

_PLAIN_WORDS = frozenset().union(*(each.plain_words for each in LANGUAGES))
_WORD = re.compile(r"[^\W\d_][\w'-]*|\d[\w.-]*")
_BOUNDARY = re.compile(
    r"[,;()–—!?\"“”„]|: | - | (?:and|but|or|und|aber|oder|sondern|because|weil|denn|which|that"
    r"|dass) "
)
# What stands directly before an identifier is named by it, unless a verb or a colon gives it.
_NAMING = re.compile(
    r"\b(?:order|invoice|ticket|issue|case|pr|pull request|flight|room|gate|building|chapter|page"
    r"|section|article|step|apartment|contract|policy|claim|booking|task|bug|story|vendor|customer"
    r"|account|shelf|bin|batch|lot|patient|bestellung|rechnung|ticket|fall|flug|zimmer|gebäude"
    r"|kapitel|seite|abschnitt|artikel|wohnung|vertrag|aufgabe|kunde|konto|regal|charge|raum"
    r"|auftrag|vorgang|gleis|table|tisch|unit|line|linie|track|level)"
    r"(?: (?:number|no\.?|nr\.?|nummer|id|#))? ?#?$"
)
_SUFFIXES = {"date": "date", "time": "time", "address": "address"}


def says_nothing(word: str) -> bool:
    """Return whether a word, in lower case, says nothing of what a sentence is about."""
    return word in _PLAIN_WORDS or is_stop_word(word)


def build_value_key(sentence: Sentence, value: Value, values: Sequence[Value]) -> str:
    """Return what a value is about: the noun phrase before it, or else the one after it.

    A date, a time and an address of one thing are distinguished by the key's last word.
    Returns an empty text if the sentence does not say it.
    """
    words = _find_phrase_before(sentence, value, values)
    if not words:
        words = _find_phrase_after(sentence, value, values)
    phrase = " ".join(words)[:KEY_CHARS]
    suffix = _SUFFIXES.get(value.category)
    if not phrase or suffix is None:
        return phrase
    return f"{phrase} ({suffix})"


def _find_phrase_before(sentence: Sentence, value: Value, values: Sequence[Value]) -> list[str]:
    """Return the nouns that stand before a value in its clause, in their order."""
    text = _blank_values(sentence, value, values, end=value.start)
    boundaries = list(_BOUNDARY.finditer(text))
    # A label stands before its value: "Staging port: 8080".
    while boundaries and not text[boundaries[-1].end() :].strip(" :=>`'\"“„("):
        text = text[: boundaries[-1].start()]
        boundaries.pop()
    if boundaries:
        text = text[boundaries[-1].end() :]
    return _take_phrase(_WORD.findall(text)[::-1])[::-1]


def _find_phrase_after(sentence: Sentence, value: Value, values: Sequence[Value]) -> list[str]:
    """Return the nouns that stand behind a value in its clause: "8080 is the staging port"."""
    text = _blank_values(sentence, value, values, start=value.end)
    boundary = _BOUNDARY.search(text)
    if boundary:
        text = text[: boundary.start()]
    return _take_phrase(_WORD.findall(text))


def _blank_values(
    sentence: Sentence,
    value: Value,
    values: Sequence[Value],
    *,
    start: int = 0,
    end: int | None = None,
) -> str:
    """Return a part of the sentence without the values in it, apart from those that name."""
    parts = []
    place = start
    stop = len(sentence.words) if end is None else end
    for other in values:
        if other is value or other.end <= start or other.start >= stop:
            continue
        parts.append(sentence.words[place : other.start])
        if names_its_noun(sentence, other):
            parts.append(other.text.lower().replace(" ", "-"))
        place = max(place, other.end)
    parts.append(sentence.words[place:stop])
    return " ".join(parts)


def names_its_noun(sentence: Sentence, value: Value) -> bool:
    """Return whether a value distinguishes one thing from others of its kind: "invoice INV-118"."""
    if value.category not in {"identifier", "number"} or value.form in {"amount", "quantity"}:
        return False
    text = sentence.words[max(0, value.start - 40) : value.start]
    if _NAMING.search(text.rstrip()):
        return True
    words = _WORD.findall(text) if value.form == "code" and text.endswith(" ") else []
    return bool(words) and text.rstrip().endswith(words[-1]) and not says_nothing(words[-1])


def _take_phrase(words: list[str]) -> list[str]:
    """Return the nouns of the phrase that begins with the first noun of these words."""
    phrase: list[str] = []
    for word in words:
        plain_word = word.removesuffix("'s").strip("'-.")
        if is_stop_word(plain_word):
            continue
        if plain_word in _PLAIN_WORDS:
            if phrase:
                break
            continue
        phrase.append(plain_word)
        if len(phrase) == KEY_WORDS:
            break
    return phrase


def build_sentence_key(sentence: Sentence, values: Sequence[Value]) -> str:
    """Return what a rule, preference, decision or commitment is about.

    That are the words which carry its content. Times, amounts and sizes are left out, so that a new
    limit supersedes the old one.
    """
    text = sentence.text.lower()
    for value in reversed(values):
        if value.form in {"time", "amount", "quantity", "measure"}:
            text = text[: value.start] + " " + text[value.end :]
    words = [word.strip("'-.") for word in re.findall(r"[^\s,;:!?()\"“”„«»]+", text)]
    content = [word for word in words if word and not says_nothing(word)]
    return " ".join((content or words)[:RULE_WORDS])[:KEY_CHARS]

"""Words as the checks compare them: stems of those that carry meaning, or pairs of letters."""

import re
from functools import lru_cache

from textkit.stems import SIGNS, find_algorithm, split_unspaced
from textkit.stems import stem_word as stem_by_algorithm
from textkit.stop_words import is_stop_word

STEM_CHARS = 6
_WORD = re.compile(rf"(?:[^\W\d_]|[{SIGNS}])+(?:['’-][^\W\d_]+)*|(?<![\d_])\w*[^\W\d_]\w*")
_SUFFIXES = (
    "ungen", "ments", "ment", "tion", "ings", "ung", "ing", "ies", "ied", "ern", "est", "ly",
    "ed", "es", "en", "er", "em", "te", "s", "e", "n", "y", "d", "t",
)  # fmt: skip


def build_word_set(text: str) -> frozenset[str]:
    """Return the words of a text that are divided by white space."""
    return frozenset(text.split())


# Words in which summaries speak of the conversation itself.
REPORT_WORDS = build_word_set(
    """
    user users assistant assistants ai model conversation chat summary message messages request
    requests requested question questions ask asks asked asking say says said tell tells told
    mention mentions mentioned state states stated discuss discusses discussed talk talked explain
    explains explained describe described note noted want wants wanted need needs needed wish
    wishes like likes give gives gave given provide provides provided offer offers offered suggest
    suggests suggested propose proposed recommend recommends recommended answer answers answered
    reply replied respond responded confirm confirms confirmed agree agrees agreed decide decides
    decided decision decisions plan plans planned key facts fact topic topics task tasks progress
    remaining data next step steps open pending goal goals context details information info rule
    rules point points issue issues currently previously later earlier further additionally first
    second third finally overall according noted wants
    nutzer nutzerin benutzer benutzerin anwender assistent assistentin assistenten gespräch
    unterhaltung zusammenfassung nachricht nachrichten frage fragen fragt fragte gefragt sagt sagte
    gesagt nennt nannte genannt erwähnt erwähnte wünscht wünschte bittet bat gebeten braucht
    brauchte erklärt erklärte beschreibt beschrieben schlägt schlug vorgeschlagen empfiehlt
    empfahl empfohlen antwortet antwortete bestätigt bestätigte einigt entschieden entscheidet
    entscheidung entscheidungen plant plante geplant aufgabe aufgaben thema themen fakten offen
    laut gilt gewünscht verlangt verlangte
    offene regel regeln punkt punkte ziel ziele außerdem zuerst zuletzt schließlich derzeit zudem
    """
)


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without numbers and punctuation.

    Where no spaces stand between words, these are pairs of letters.
    """
    words = _WORD.findall(text.casefold())
    return words if text.isascii() else [part for word in words for part in split_unspaced(word)]


@lru_cache(maxsize=50_000)
def stem_word(word: str) -> str:
    """Return the beginning that the forms of a word share, for example `book` for `booked`."""
    if not word.isascii() and (algorithm := find_algorithm(word)):
        return stem_by_algorithm(word, algorithm)
    stem = word.replace("’", "'")
    stem = stem.removesuffix("'s").removesuffix("s'")
    if stem.startswith("ge") and len(stem) >= 7 and stem.endswith(("t", "en")):
        stem = stem[2:]
    for suffix in _SUFFIXES:
        if stem.endswith(suffix) and len(stem) - len(suffix) >= 3:
            stem = stem[: -len(suffix)]
            break
    return stem[:STEM_CHARS]


def list_stems(text: str) -> set[str]:
    """Return the stems of the words of a text that carry meaning."""
    return set(list_ordered_stems(text))


def list_ordered_stems(text: str) -> list[str]:
    """Return the stems of the words of a text that carry meaning, in their order."""
    return [stem_word(word) for word in split_words(text) if carries_meaning(word)]


def carries_meaning(word: str) -> bool:
    """Return whether a word, in lower case, says what a text is about."""
    bare_word = word.replace("’", "'").removesuffix("'s")
    is_plain = bare_word in REPORT_WORDS or is_stop_word(bare_word)
    return len(bare_word) > 1 and not is_plain

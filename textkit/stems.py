"""Reduce words to stems: English ones by Porter's algorithm, and German ones by a light one.

The English stems are those of the tokenizer `porter` of FTS5, which the index has. The German ones
lose the endings of cases and plurals, as in J. Savoy, "Light stemming approaches for the French,
Portuguese, German and Hungarian languages", 2006.
"""

import functools
import re
import unicodedata

import snowballstemmer

MAX_STEM_CHARS = 64  # longer words are left as they are, as FTS5 does
MIN_GERMAN_STEM_CHARS = 4
_CACHE_SIZE = 50_000  # words

_MARKS = re.compile("[\u0300-\u036f]+")  # of Latin letters; others change the letter
_LETTERS = str.maketrans(
    {"œ": "oe", "æ": "ae", "ß": "ss", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
)
_PAIR = re.compile(r"(?<![\uac00-\ud7af])([\uac00-\ud7af]{2})|(?=([^\W\d_]{2}))(?![\uac00-\ud7af])")
# The algorithm of Snowball for the words of a script that is not Latin.
_STEMMERS = (
    (re.compile("[\u0400-\u04ff]"), "russian"),
    (re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), "greek"),
    (re.compile("[\u0600-\u06ff]"), "arabic"),
    (re.compile("[\u0900-\u097f]"), "hindi"),
    (re.compile("[\u0530-\u058f]"), "armenian"),
    (re.compile("[\u0b80-\u0bff]"), "tamil"),
)
# The signs that stand on letters in Hebrew, Arabic and the scripts of India, as for a character
# class: they belong to the word, and Python's `\w` has none of them.
SIGNS = "\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0903\u093a-\u0957\u0962-\u0963\u0980-\u0dff"
_UNSPACED = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f]+"
)
_DIGIT_EDGE = re.compile(
    f"(?<={_UNSPACED.pattern[:-1]})(?=\\d)|(?<=\\d)(?={_UNSPACED.pattern[:-1]})"
)
_GERMAN_SUFFIX = re.compile("(?:ern|em|er|en|es|e|n|s)$")


def fold_case(text: str) -> str:
    """Return the text in lower case and without diacritics: `Äpfel` becomes `apfel`."""
    text = text.lower()
    if text.isascii():
        return text
    letters = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", letters)


def fold_letters(text: str) -> str:
    """Return `fold_case` with the letters that have no diacritic: `sœur` becomes `soeur`.

    The search index keeps such letters, so its terms are written by `fold_case` alone.
    """
    folded_text = fold_case(text)
    return folded_text if folded_text.isascii() else folded_text.translate(_LETTERS)


@functools.lru_cache(_CACHE_SIZE)
def list_stems(word: str) -> tuple[str, ...]:
    """Return the stems of a folded word: the English one, and the German one if it is another.

    A word of another script has the stem of a language that is written in it.
    """
    if not word.isascii() and (algorithm := find_algorithm(word)):
        return (stem_word(word, algorithm),)
    english = stem_english(word)
    german = stem_german(word)
    return (english,) if german == english else (english, german)


def stem_german(word: str) -> str:
    """Return a folded word without one German suffix; short words are left as they are.

    Of a word of another script it is the stem, if the word begins with that.
    """
    if not word.isascii() and (algorithm := find_algorithm(word)):
        script_stem = stem_word(word, algorithm)
        return script_stem if word.startswith(script_stem) else word
    stem = _GERMAN_SUFFIX.sub("", word)
    return stem if len(stem) >= MIN_GERMAN_STEM_CHARS else word


def stem_english(word: str) -> str:
    """Return the stem of a folded word after Porter; words that are not English are left alone."""
    if not 2 < len(word) <= MAX_STEM_CHARS or not word.isascii() or not word.isalpha():
        return word
    # A stemmer works on the word that it holds, so threads cannot share one.
    return str(snowballstemmer.stemmer("porter").stemWord(word))


@functools.lru_cache(_CACHE_SIZE)
def stem_word(word: str, algorithm: str) -> str:
    """Return the stem of a word in lower case after an algorithm of Snowball, as "polish"."""
    if len(word) > MAX_STEM_CHARS:
        return word
    return str(snowballstemmer.stemmer(algorithm).stemWord(word))


def find_algorithm(word: str) -> str:
    """Return the algorithm of Snowball for a word of another script than Latin; empty for none."""
    return next((name for script, name in _STEMMERS if script.match(word)), "")


def is_unspaced(word: str) -> bool:
    """Return whether a word begins with a script that has no spaces between its words."""
    return bool(_UNSPACED.match(word))


def separate_digits(text: str) -> str:
    """Return a text with spaces between numbers and letters of a script without spaces."""
    return text if text.isascii() else _DIGIT_EDGE.sub(" ", text)


def split_unspaced(word: str) -> list[str]:
    """Return the pairs of letters of a word of a script without spaces; any other word is whole."""
    if word.isascii() or not _UNSPACED.search(word):
        return [word]
    parts = [part for part in _UNSPACED.split(word) if part]
    for run in _UNSPACED.findall(word):
        parts += list_pairs(run) or [run]
    return parts


def list_pairs(text: str) -> list[str]:
    """Return each two letters that stand together, for languages that write no spaces.

    Of a Korean word they are the first two, since endings follow.
    """
    return [korean or other for korean, other in _PAIR.findall(text)]

"""Reduce words to stems: English ones by Porter's algorithm, and German ones by a light one.

The English stems are those of the tokenizer `porter` of FTS5 (M. F. Porter, "An algorithm for
suffix stripping", 1980). The German ones lose the endings of cases and plurals, as in J. Savoy,
"Light stemming approaches for the French, Portuguese, German and Hungarian languages", 2006.
"""

import functools
import re
import unicodedata

MAX_STEM_CHARS = 64  # longer words are left as they are, as FTS5 does
MIN_GERMAN_STEM_CHARS = 4
_CACHE_SIZE = 50_000  # words

_VOWEL = "(?:[aeiou]|(?<![aeiou])(?<!^)y)"
_CONSONANT = "(?:[^aeiouy]|(?:(?<=[aeiou])|^)y)"
_HAS_VOWEL = re.compile(_VOWEL)
_MEASURE = re.compile(f"{_VOWEL}(?={_CONSONANT})")
_SHORT_END = re.compile(f"{_CONSONANT}{_VOWEL}(?![wxy]){_CONSONANT}$")
_DOUBLE_END = re.compile(r"([^aeiouylsz])\1$")

_STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "abli": "able",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
}
_STEP_3 = {
    "icate": "ic",
    "ative": "",
    "alize": "al",
    "iciti": "ic",
    "ical": "ic",
    "ful": "",
    "ness": "",
}
_STEP_4_SUFFIXES = (
    *("ement", "ance", "ence", "able", "ible", "ment", "sion", "tion", "ant", "ent", "ism", "ate"),
    *("iti", "ous", "ive", "ize", "al", "er", "ic", "ou"),
)
_STEP_2_SUFFIXES = sorted(_STEP_2, key=len, reverse=True)
_STEP_3_SUFFIXES = sorted(_STEP_3, key=len, reverse=True)
_MARKS = re.compile("[\u0300-\u036f]+")  # of Latin letters; others change the letter
_GERMAN_SUFFIX = re.compile("(?:ern|em|er|en|es|e|n|s)$")


def fold_case(text: str) -> str:
    """Return the text in lower case and without diacritics: `Äpfel` becomes `apfel`."""
    text = text.lower()
    if text.isascii():
        return text
    letters = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", letters)


@functools.lru_cache(_CACHE_SIZE)
def list_stems(word: str) -> tuple[str, ...]:
    """Return the stems of a folded word: the English one, and the German one if it is another."""
    english = stem_english(word)
    german = stem_german(word)
    return (english,) if german == english else (english, german)


def stem_german(word: str) -> str:
    """Return a folded word without one German suffix; short words are left as they are."""
    stem = _GERMAN_SUFFIX.sub("", word)
    return stem if len(stem) >= MIN_GERMAN_STEM_CHARS else word


def stem_english(word: str) -> str:
    """Return the stem of a folded word after Porter; words that are not English are left alone."""
    if not 2 < len(word) <= MAX_STEM_CHARS or not word.isascii() or not word.isalpha():
        return word
    word = _strip_inflection(_strip_plural(word))
    if word.endswith("y") and _HAS_VOWEL.search(word[:-1]):
        word = word[:-1] + "i"
    word = _replace_suffix(word, _STEP_2_SUFFIXES, _STEP_2)
    word = _replace_suffix(word, _STEP_3_SUFFIXES, _STEP_3)
    return _strip_final_e(_strip_suffix(word))


def _strip_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _strip_inflection(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        stem = word.removesuffix(suffix)
        if stem != word:
            return _repair_end(stem) if _HAS_VOWEL.search(stem) else word
    return word


def _repair_end(stem: str) -> str:
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _DOUBLE_END.search(stem):
        return stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _SHORT_END.search(stem) else stem


def _replace_suffix(word: str, suffixes: list[str], replacements: dict[str, str]) -> str:
    for suffix in suffixes:
        if word.endswith(suffix):
            stem = word.removesuffix(suffix)
            return stem + replacements[suffix] if _measure(stem) > 0 else word
    return word


def _strip_suffix(word: str) -> str:
    for suffix in _STEP_4_SUFFIXES:
        if word.endswith(suffix):
            # Of -sion and -tion only -ion is the suffix.
            stem = word[:-3] if suffix in ("sion", "tion") else word.removesuffix(suffix)
            return stem if _measure(stem) > 1 else word
    return word


def _strip_final_e(word: str) -> str:
    if word.endswith("e"):
        stem = word[:-1]
        measure = _measure(stem)
        if measure > 1 or (measure == 1 and not _SHORT_END.search(stem)):
            word = stem
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _measure(stem: str) -> int:
    """Return how often a vowel is followed by a consonant."""
    return len(_MEASURE.findall(stem))

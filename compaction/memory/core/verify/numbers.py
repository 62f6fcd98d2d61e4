"""The numbers of a text, read in every way in which the same number may be written."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from compaction.memory.core.verify.words import build_word_set

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
    "twenty thirty forty fifty sixty seventy eighty ninety",
)
_GERMAN = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn",
    "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
)
_SCALES = {
    "k": 1_000,
    "thousand": 1_000,
    "tausend": 1_000,
    "tsd": 1_000,
    "m": 1_000_000,
    "mio": 1_000_000,
    "million": 1_000_000,
    "millions": 1_000_000,
    "millionen": 1_000_000,
    "mrd": 1_000_000_000,
    "bn": 1_000_000_000,
    "billion": 1_000_000_000,
    "milliarde": 1_000_000_000,
    "milliarden": 1_000_000_000,
    "hundred": 100,
    "hundert": 100,
    "dozen": 12,
    "dutzend": 12,
}


def _build_number_words() -> dict[str, float]:
    small_words, tens_words = (words.split() for words in _ENGLISH)
    small_german, tens_german = (words.split() for words in _GERMAN)
    values: dict[str, float] = {}
    for words in (small_words, small_german):
        values |= zip(words, range(20), strict=True)
    for tens, (word, german) in enumerate(zip(tens_words, tens_german, strict=True), start=2):
        values[word] = values[german] = tens * 10
        for ones in range(1, 10):
            values[f"{word}-{small_words[ones]}"] = tens * 10 + ones
            values[f"{small_german[ones]}und{german}"] = tens * 10 + ones
    for count, word in enumerate(small_german[1:13], start=1):
        values[f"{word}mal"] = count
    return values | _OTHER_WORDS


_OTHER_WORDS: dict[str, float] = {
    "hundred": 100, "hundert": 100, "einhundert": 100, "thousand": 1000, "tausend": 1000,
    "eintausend": 1000, "dozen": 12, "dutzend": 12, "dreissig": 30, "couple": 2, "both": 2,
    "beide": 2, "beiden": 2, "twice": 2, "zweimal": 2, "pair": 2, "paar": 2, "half": 0.5,
    "halb": 0.5, "halbe": 0.5, "hälfte": 0.5, "double": 2, "doppelt": 2, "quarter": 0.25,
    "viertel": 0.25, "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6,
    "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
}  # fmt: skip
NUMBER_WORDS = _build_number_words()
# Words that are so often no number that a summary may use them freely.
FREE_WORDS = build_word_set(
    "one ein null half halb halbe both beide beiden couple paar pair first second third quarter "
    "viertel double doppelt hundred hundert thousand tausend hälfte twice"
)
_NUMBER = re.compile(
    r"(?<![\w.,])[-+]?(?P<digits>\d+(?:[.,'’\u202f\u00a0 ]\d{3})+(?:[.,]\d+)?(?!\d)|"
    r"\d+(?:[.,]\d+)*)"
    r"(?P<ordinal>st|nd|rd|th)?"
    r"(?:\s?(?P<scale>k|thousand|tausend|tsd|mio|m|millions?|millionen|bn|billion|mrd|milliarden?|"
    r"dozen|dutzend)\b\.?)?"
    r"(?P<percent>\s?(?:%|percent|per cent|prozent))?",
    re.IGNORECASE,
)
_RAW = re.compile(r"\d[\d.,'’/:-]*")
_DIGIT_GROUPS = re.compile(r"\d{1,3}(?:[.,'’\u202f\u00a0 ]\d{3})+\Z")
_SEVERAL_GROUPS = re.compile(r"\d{1,3}([.,'’\u202f\u00a0 ])\d{3}(?:\1\d{3})+\Z")
_WORD = re.compile(r"[a-zäöüß]+(?:-[a-z]+)?")


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text, with its place and every value that it may mean."""

    text: str
    start: int
    end: int
    values: frozenset[float]
    is_percent: bool = False
    is_word: bool = False


def find_numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text, in digits and in words."""
    for match in _NUMBER.finditer(text):
        values = read_digits(match["digits"])
        scale = (match["scale"] or "").casefold()
        if scale:
            values = {round(value * _SCALES[scale], 6) for value in values}
        if match["percent"]:
            values |= {round(value / 100, 6) for value in values}
        yield Number(
            match[0].strip(), match.start(), match.end(), frozenset(values), bool(match["percent"])
        )
    for match in _WORD.finditer(text.casefold()):
        if match[0] in NUMBER_WORDS:
            values = {NUMBER_WORDS[match[0]]}
            yield Number(match[0], match.start(), match.end(), frozenset(values), is_word=True)


def read_digits(digits: str) -> set[float]:
    """Return the values that digits with separators may mean: 1.000 is a thousand, or one."""
    if digits.isdecimal():
        return {float(digits)}
    values: set[float] = set()
    if _DIGIT_GROUPS.match(digits):
        values.add(float(re.sub(r"\D", "", digits)))
    if _SEVERAL_GROUPS.match(digits):
        return values  # 1,600,000 is nothing else
    parts = [part for part in re.split(r"[.,]", digits) if part]
    if len(parts) == 2:
        integer, fraction = (re.sub(r"\D", "", part) for part in parts)
        values.add(round(float(f"{integer}.{fraction}"), 6))
    elif len(parts) > 2:
        values.add(round(float("".join(parts[:-1]) + "." + parts[-1]), 6))
    elif parts:
        values.add(float(re.sub(r"\D", "", parts[0])))
    return values


def collect_values(text: str, words: set[str]) -> set[float]:
    """Return the values of all numbers of the sources; `words` are all their words.

    A run of digits such as `10:30-11` is read as a whole and in its parts.
    """
    values = {NUMBER_WORDS[word] for word in words if word in NUMBER_WORDS}
    parts = {part for word in words if "-" in word for part in word.split("-")}
    values |= {NUMBER_WORDS[part] for part in parts if part in NUMBER_WORDS}
    for raw in set(_RAW.findall(text)):
        if raw.isdecimal():
            values.add(float(raw))
            continue
        for part in re.split(r"[/:-]", raw):
            values |= read_digits(part.strip(".,'’"))
        if re.search(r"[.,]", raw):
            values |= {float(part) for part in re.findall(r"\d+", raw)}
    return values


def collect_composed_values(text: str) -> set[float]:
    """Return the values that need a closer look: with a scale, in percent, in several words."""
    values: set[float] = set()
    for number in find_numbers(text):
        values |= number.values
    total, count = 0.0, 0
    for word in re.findall(r"[a-zäöüß]+|\d+", text):
        if word in _SCALES and count:
            total, count = max(total, 1) * _SCALES[word], count + 1
        elif word in NUMBER_WORDS:
            total, count = total + NUMBER_WORDS[word], count + 1
        elif word not in ("and", "und"):
            values.add(total)
            total, count = 0.0, 0
    values.add(total)
    return values

"""Check the numbers, dates, addresses and ids of a sentence against the sources."""

import math
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import combinations, islice

from compaction.memory.core.verify import dates, numbers
from compaction.memory.core.verify.numbers import Number
from compaction.memory.core.verify.report import Check
from compaction.memory.core.verify.sources import Alignment, SourceIndex
from compaction.memory.core.verify.words import carries_meaning, list_stems, stem_word
from textkit.calendar import MONTHS, list_names
from textkit.relative_days import may_mean
from textkit.stems import separate_digits

_IDENTIFIER = re.compile(
    r"\+\d{1,3}[ \d()/-]{6,}\d|https?://[^\s)>\]\"'”»]+|"
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+|"
    r"(?<![\w/])(?:~|\.{1,2})?/(?:[\w.@-]+/)*[\w.@-]+|(?<!\w)(?<!\w-)\w[\w-]*(?:/[\w.-]+)+\b|"
    r"`[^`\n]+`|(?<![\w.])v?\d+\.\d+\.\d+(?:\.\d+)*\b(?!\.)|"
    r"(?<!\w)(?<!\w-)(?=\w)(?=[\w-]*\d)(?=[\w-]*[^\W\d])[\w]+(?:[-_][\w]+)*\b|\b\w+_\w+\b|"
    r"(?<!\w)(?<!\w-)\w[\w-]*\.(?:py|js|ts|md|txt|json|ya?ml|csv|pdf|html|css|sql|"
    r"toml|ini|cfg|conf|sh|go|rs|java|docx?|xlsx?|com|org|net|de|io|dev|example)\b"
)
_QUANTITY = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)?)(?P<unit>st|nd|rd|th|[a-z]{1,4})|(?P<count>\d+)(?:-[a-z]+)+|"
    r"\d+(?:[-–x×]\d+)+[a-z]?|q[1-4]|[a-z]+-\d{1,2}\Z",
    re.IGNORECASE,
)
_UNIT = re.compile(r"\s*+[-–]?\s*+([^\W\d_]+|[€$£%°])")
_CURRENCY = {
    "€": "euro",
    "$": "dollar",
    "£": "pound",
    "eur": "euro",
    "usd": "dollar",
    "gbp": "pound",
}
_ORDINAL_LABEL = re.compile(
    r"(?:\b(?:step|steps|option|part|phase|point|item|no\.?|nr\.?|number|round|section|chapter|"
    r"messages?|turns?|schritt|punkt|teil|nummer|nachricht(?:en)?|abschnitt|"
    r"kapitel)\s*|#)\Z",
    re.IGNORECASE,
)
_APPROXIMATE = re.compile(
    r"\b(?:about|around|roughly|approximately|approx\.?|some|nearly|almost|over|under|up to|"
    r"more than|less than|at least|ca\.?|circa|etwa|rund|ungefähr|knapp|gut|fast|über|unter|"
    r"mehr als|weniger als|mindestens|bis zu)\s*(?:[€$£]\s*)?\Z|[~≈<>]\s*\Z",
    re.IGNORECASE,
)
_SUM = re.compile(
    r"\b(?:total\w*|sum|altogether|combined|together|overall|remaining|remains?|left|difference|"
    r"rest|more|fewer|less|saved?|increase\w*|decrease\w*|average|per|insgesamt|zusammen|gesamt\w*|"
    r"summe|übrig\w*|differenz|restlich\w*|mehr|weniger|durchschnitt\w*|pro|je)\b",
    re.IGNORECASE,
)
_BEFORE_DAY = r"\b(?:am|vom|zum|bis|dem|der|den|und|oder|ab) "  # in German
MONTH_MESSAGES = 3  # before the one that says a day, of which one may say its month
MAX_NUMBERS = 200  # of one sentence; what has more is data
MAX_COUNT = 12  # up to here a summary counts things by itself
TOLERANCE = 0.06  # of a rounded number
MAX_ADDENDS = 12  # numbers of the sources among which a sum is looked for
# Units in which the same may be stated: a row has one dimension, and how many of the first each is.
_MEASURES = """
second 1, minute 60, hour 3600, day 86400, week 604800
sec 1, secs 1, s 1, min 60, mins 60, h 3600, hr 3600, hrs 3600, std 3600
sekunde 1, minute 60, stunde 3600, tag 86400, woche 604800
month 1, year 12, monat 1, jahr 12, quarter 3, quartal 3
byte 1, bytes 1, kb 1e3, mb 1e6, gb 1e9, tb 1e12, kib 1e3, mib 1e6, gib 1e9
mm 1, cm 10, m 1e3, km 1e6, meter 1e3, metre 1e3, kilometer 1e6, kilometre 1e6, millimeter 1
mg 1, g 1e3, kg 1e6, t 1e9, gram 1e3, gramm 1e3, kilo 1e6, kilogram 1e6, ton 1e9, tonne 1e9
milligram 1, milligramm 1, µg 1e-3, mcg 1e-3, kilogramm 1e6
ml 1, cl 10, dl 100, l 1e3, liter 1e3, litre 1e3, milliliter 1, millilitre 1
euro 1, cent 0.01
dollar 1
pound 1
franc 1, franken 1, chf 1
yen 1
"""
Place = tuple[Check, int, int]
Unit = tuple[str, float]  # what it is a unit of, and how many of the first unit of that it is


def _read_measures() -> dict[str, Unit]:
    """Return the units by the forms of their names; several rows may be of one dimension."""
    measures: dict[str, Unit] = {}
    dimension = ""
    for row in _MEASURES.strip().splitlines():
        pairs = [pair.split() for pair in row.split(", ")]
        if pairs[0][0] not in ("sec", "sekunde", "milligram"):
            dimension = pairs[0][0]
        for name, factor in pairs:
            for ending in ("", "s", "n", "en", "e") if len(name) > 3 else ("",):
                measures.setdefault(name + ending, (dimension, float(factor)))
    return measures


_UNITS = _read_measures()


class FigureCheck:
    """The numbers, dates and addresses of the sources, and what of a sentence is none of them."""

    def __init__(self, index: SourceIndex, alignment: Alignment) -> None:
        self.index = index
        self.alignment = alignment
        self._values_by_message: dict[int, set[float]] = {}
        self._stated_names: set[str] = set()

    @cached_property
    def values(self) -> set[float]:
        """The numbers that stand in the sources."""
        return numbers.collect_values(self.index.text, self.index.words)

    @cached_property
    def quantities(self) -> dict[str, set[float]]:
        """The numbers of the sources by what they count or measure; by "" those of nothing."""
        quantities: dict[str, set[float]] = {}
        for text in self.index.texts:
            for number in numbers.find_numbers(text):
                unit = _read_unit(text, number)
                quantities.setdefault(unit[0], set()).update(_convert(number, unit))
        return quantities

    @cached_property
    def composed_values(self) -> set[float]:
        """The numbers that are composed of several words or signs: `2.5 million`."""
        return numbers.collect_composed_values(self.index.text)

    @cached_property
    def moments(self) -> list[dates.Moment]:
        """The dates of the sources."""
        return list(dates.collect_dates(self.index.texts, self.index.word_lists))

    @cached_property
    def minutes(self) -> set[int]:
        """The times of the day in the sources."""
        moments = dates.find_times(self.index.text)
        return {minutes for moment in moments for minutes in moment.minutes}

    @cached_property
    def date_names(self) -> set[str]:
        """The names of weekdays and months that the dates of the sources stand for."""
        return dates.list_weekday_names(self.moments)

    def find_places(self, sentence: str) -> Iterator[Place]:
        """Yield the check and the place of each figure of a sentence that no source has."""
        sentence = separate_digits(sentence)
        taken_places: list[tuple[int, int]] = []
        self._stated_names = set()
        yield from self._find_identifiers(sentence, taken_places)
        yield from self._find_dates(sentence, taken_places)
        for number in islice(numbers.find_numbers(sentence), MAX_NUMBERS):
            is_free = number.is_word and number.text in numbers.FREE_WORDS
            if is_free or _overlaps(number.start, number.end, taken_places):
                continue
            if not self._has_number(number, sentence):
                yield "numbers", number.start, number.end

    def _find_identifiers(
        self, sentence: str, taken_places: list[tuple[int, int]]
    ) -> Iterator[Place]:
        for match in _IDENTIFIER.finditer(sentence):
            text = match[0].strip("`").rstrip(".,;:").casefold()
            if _QUANTITY.fullmatch(text):
                continue
            taken_places.append(match.span())
            if not self._has_identifier(text):
                yield "identifiers", *match.span()

    def _find_dates(self, sentence: str, taken_places: list[tuple[int, int]]) -> Iterator[Place]:
        for moment in (*dates.find_dates(sentence), *dates.find_times(sentence)):
            if _overlaps(moment.start, moment.end, taken_places):
                continue
            taken_places.append((moment.start, moment.end))
            # "Tuesday, 1 September 2026" is one date; its weekday is not a value of its own.
            self._stated_names |= dates.list_weekday_names([moment])
            if not self._has_moment(moment):
                yield "dates", moment.start, moment.end
        for name, start, end in dates.find_weekdays_and_months(sentence):
            if not _overlaps(start, end, taken_places) and not self._has_date_name(name):
                yield "dates", start, end

    def _has_identifier(self, text: str) -> bool:
        if text in self.index.text:
            return True
        bare_text = text.removeprefix("https://").removeprefix("http://").removeprefix("www.")
        bare_text = bare_text.rstrip("/")
        if bare_text in self.index.text:
            return True
        if " " in text:
            # Words in backquotes: a command that a summary puts together from what was said.
            return all(part in self.index.text for part in text.split())
        version = text.removeprefix("v")
        return version != text and version[:1].isdigit() and version in self.index.text

    def _has_moment(self, moment: dates.Moment) -> bool:
        # Most stand in the sources as they are; to read all dates of the sources takes long.
        if self.index.has_quotation(moment.text.strip().casefold()):
            return True
        if moment.minutes:
            return bool(moment.minutes & self.minutes) or self._has_all_digits(moment)
        is_dated = any(
            moment.days & date.days and (not moment.year or date.year in (None, moment.year))
            for date in self.moments
        )
        return is_dated or self._shares_message(moment) or self._is_near(moment)

    def _is_near(self, moment: dates.Moment) -> bool:
        """Return whether it is the day of a message, or what one calls "tomorrow" or "Friday"."""
        return any(
            source.day == day or may_mean(source.text, source.day, day)
            for day in dates.list_days(moment)
            for source in self.index.sources
            if source.day is not None
        )

    def _has_all_digits(self, moment: dates.Moment) -> bool:
        return moment.text.strip().casefold() in self.index.text

    def _shares_message(self, moment: dates.Moment) -> bool:
        """Return whether a message says the day of a date, and it or one before it the month."""
        for month, day in moment.days:
            names = set(list_names(MONTHS, month))
            ordinal = re.compile(rf"(?<!\d){day}(?:st|nd|rd|th)\b|{_BEFORE_DAY}{day}\.(?!\d)")
            number = re.compile(rf"(?<!\d){day}(?!\d)")
            for position, text in enumerate(self.index.texts):
                nearby = self.index.word_lists[max(0, position - MONTH_MESSAGES) : position + 1]
                if all(names.isdisjoint(words) for words in nearby):
                    continue
                if ordinal.search(text):
                    return True
                # A plain number beside other dates is rather none.
                is_day = names.intersection(nearby[-1]) and number.search(text)
                if is_day and not any(other.days for other in dates.find_dates(text)):
                    return True
        return False

    def _has_date_name(self, word: str) -> bool:
        names = dates.list_names_of(word)
        known_names = self.date_names | self._stated_names
        return not names.isdisjoint(self.index.words) or not names.isdisjoint(known_names)

    def _has_number(self, number: Number, sentence: str) -> bool:
        """Return whether the sources have a number, of the same unit and beside the same words."""
        if _ORDINAL_LABEL.search(sentence[: number.start]):
            return True
        unit = _read_unit(sentence, number)
        known_values = self.quantities.get(unit[0], set()) if unit[0] else set()
        stems = list_stems(sentence)
        if known_values & _convert(number, unit):
            return self._fits_context(number, unit, stems)
        if known_values or unit in _UNITS.values():
            # The sources count these things, and never so many; or this unit is none of theirs.
            return self._stands_alone(number, stems) or self._is_derived(number, unit, sentence)
        if number.values & self.values:
            return self._fits_context(number, unit, stems)
        if number.values & self.composed_values:
            return True
        smallest = min(number.values)
        if smallest <= MAX_COUNT and smallest == int(smallest) and not number.is_percent:
            return True
        return self._is_derived(number, unit, sentence)

    def _fits_context(self, number: Number, unit: Unit, stems: set[str]) -> bool:
        """Return whether a message that is about the same has the number, in whatever form."""
        if number.is_word or min(number.values) <= MAX_COUNT or len(stems) < 2:
            return True
        positions = self.index.find_messages(number.text.casefold())
        values = _convert(number, unit)
        positions += [
            position
            for position in self.alignment.find_candidates(stems)
            if not values.isdisjoint(self._collect_message_values(position))
        ]
        shares = (self.alignment.shares_words(position, stems) for position in positions)
        return not positions or any(shares)

    def _collect_message_values(self, position: int) -> set[float]:
        """Return the numbers of a message, each alone and in the first unit of its kind."""
        if position not in self._values_by_message:
            text = self.index.texts[position]
            self._values_by_message[position] = {
                value
                for number in numbers.find_numbers(text)
                for value in number.values | _convert(number, _read_unit(text, number))
            }
        return self._values_by_message[position]

    def _stands_alone(self, number: Number, stems: set[str]) -> bool:
        """Return whether a message that is about the same has the number without a unit."""
        if number.values.isdisjoint(self.quantities.get("", set())):
            return False
        positions = self.index.find_messages(number.text.casefold())
        return any(
            self.alignment.shares_words(position, stems)
            and any(
                number.values & other.values
                and not _read_unit(self.index.texts[position], other)[0]
                for other in numbers.find_numbers(self.index.texts[position])
            )
            for position in (*positions, *self.alignment.find_candidates(stems))
        )

    def _is_derived(self, number: Number, unit: Unit, sentence: str) -> bool:
        """Return whether a number is a rounded one of this unit, or a sum."""
        if _APPROXIMATE.search(sentence[: number.start]):
            known_values = self.quantities.get(unit[0]) or self.values | self.composed_values
            values = _convert(number, unit)
            if any(_is_rounded(value, other) for value in values for other in known_values):
                return True
        return bool(_SUM.search(sentence)) and self._is_sum(number, sentence)

    def _is_sum(self, number: Number, sentence: str) -> bool:
        addends: set[float] = set()
        for position in self.alignment.find_candidates(list_stems(sentence)):
            text = self.index.texts[position]
            addends |= {
                value
                for found_number in numbers.find_numbers(text)
                for value in found_number.values
            }
        terms = sorted(addends, reverse=True)[:MAX_ADDENDS]
        results = {sum(terms)}
        for first, second in combinations(terms, 2):
            results |= {first + second, first - second, first * second}
            results.add(round(first / second, 2) if second else first)
            results.add((first + second) / 2)
        for triple in combinations(terms, 3):
            results |= {sum(triple), sum(triple) / 3}
        return any(
            abs(value - result) <= 0.005 * max(abs(result), 1)
            for value in number.values
            for result in results
        )


def _read_unit(text: str, number: Number) -> Unit:
    """Return the unit before or behind a number; another word behind it is a unit of its own."""
    if number.is_percent:
        return "", 1.0
    sign = text[: number.start].rstrip()[-1:]
    match = _UNIT.match(text, number.end)
    name = match[1].casefold() if match else ""
    name = _CURRENCY.get(sign, _CURRENCY.get(name, name))
    if name in _UNITS:
        return _UNITS[name]
    return (stem_word(name), 1.0) if carries_meaning(name) else ("", 1.0)


def is_measure(name: str) -> bool:
    """Return whether a word is a unit, and so no name."""
    return name.casefold() in _UNITS


def _convert(number: Number, unit: Unit) -> set[float]:
    dimension, factor = unit
    values = {round(value * factor, 6) for value in number.values}
    if dimension == "byte":  # a megabyte is a thousand kilobytes, or 1,024
        values |= {round(value * 1.024 ** (math.log10(factor) // 3)) for value in values}
    return values


def _is_rounded(value: float, source_value: float) -> bool:
    """Return whether a value is close to one of the sources and has fewer digits of its own."""
    if abs(value - source_value) > TOLERANCE * max(abs(source_value), 1):
        return False
    return _count_digits(value) < _count_digits(source_value)


def _count_digits(value: float) -> int:
    return len(f"{value:.10g}".rstrip("0").strip("."))


def _overlaps(start: int, end: int, places: list[tuple[int, int]]) -> bool:
    return any(start < last and first < end for first, last in places)

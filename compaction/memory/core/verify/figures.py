"""Check the numbers, dates, addresses and ids of a sentence against the sources."""

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import combinations, islice

from compaction.memory.core.verify import dates, numbers
from compaction.memory.core.verify.numbers import Number
from compaction.memory.core.verify.report import Check
from compaction.memory.core.verify.sources import MAX_POSTINGS, Alignment, SourceIndex
from compaction.memory.core.verify.words import (
    build_word_set,
    carries_meaning,
    list_stems,
    stem_word,
)
from textkit.calendar import MONTHS, list_names
from textkit.relative_days import may_mean

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
_SIGNS = {"euro": ("€", "eur"), "dollar": ("$", "usd"), "pound": ("£", "gbp")}
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
MAX_NUMBERS = 200  # of one sentence; what has more is data
MAX_COUNT = 12  # up to here a summary counts things by itself
TOLERANCE = 0.06  # of a rounded number
MAX_ADDENDS = 12  # numbers of the sources among which a sum is looked for
# Between the units in which the same time or size may be stated.
_FACTORS = (60, 24, 7, 30, 12, 1000, 1024, 3600, 52, 100)
_CONVERTIBLE = frozenset(
    map(
        stem_word,
        build_word_set(
            """
            second seconds minute minutes min hour hours h day days week weeks month months year
            years sekunde sekunden minuten stunde stunden tag tage tagen woche wochen monat monate
            monaten jahr jahre jahren kb mb gb tb bytes meter km cm mm gram kg percent prozent
            """
        ),
    )
)

Place = tuple[Check, int, int]


class FigureCheck:
    """The numbers, dates and addresses of the sources, and what of a sentence is none of them."""

    def __init__(self, index: SourceIndex, alignment: Alignment) -> None:
        self.index = index
        self.alignment = alignment
        self._values_by_unit: dict[str, set[float]] = {}
        self._values_by_message: dict[int, set[float]] = {}
        self._stated_names: set[str] = set()

    @cached_property
    def values(self) -> set[float]:
        """The numbers that stand in the sources."""
        return numbers.collect_values(self.index.text, self.index.words)

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
        """Return whether one message has both the day and the month of a date."""
        for month, day in moment.days:
            names = list_names(MONTHS, month)
            day_number = re.compile(rf"(?<!\d){day}(?!\d)")
            for words, text in zip(self.index.word_lists, self.index.texts, strict=True):
                if set(names).isdisjoint(words) or not day_number.search(text):
                    continue
                if not any(other.days for other in dates.find_dates(text)):
                    return True
        return False

    def _has_date_name(self, word: str) -> bool:
        names = dates.list_names_of(word)
        known_names = self.date_names | self._stated_names
        return not names.isdisjoint(self.index.words) or not names.isdisjoint(known_names)

    def _has_number(self, number: Number, sentence: str) -> bool:
        before = sentence[: number.start]
        if _ORDINAL_LABEL.search(before):
            return True
        unit = _read_unit(sentence, number)
        smallest = min(number.values)
        if number.values & self.values:
            return self._fits_context(number, unit, sentence)
        if number.values & self.composed_values:
            return True
        if smallest <= MAX_COUNT and smallest == int(smallest) and not number.is_percent:
            return not self._is_measured(unit, number)
        return self._is_derived(number, unit, before, sentence)

    def _fits_context(self, number: Number, unit: str, sentence: str) -> bool:
        """Return whether a number that stands in the sources stands there for the same thing."""
        stems = list_stems(sentence) - {stem_word(unit)}
        positions = self.index.find_messages(number.text.casefold())
        # In another form the number may stand in any of the messages that are about this.
        positions += [
            position
            for position in self.alignment.find_candidates(stems)
            if not number.values.isdisjoint(self._collect_message_values(position))
        ]
        if self._is_measured(unit, number):
            return any(
                self.alignment.shares_words(position, stems)
                and self._stands_alone(number, unit, position)
                for position in positions
            ) or self._is_derived(number, unit, sentence[: number.start], sentence)
        if number.is_word or min(number.values) <= MAX_COUNT or len(stems) < 2 or not positions:
            return True
        return any(self.alignment.shares_words(position, stems) for position in positions)

    def _collect_message_values(self, position: int) -> set[float]:
        if position not in self._values_by_message:
            self._values_by_message[position] = {
                value
                for number in numbers.find_numbers(self.index.texts[position])
                for value in number.values
            }
        return self._values_by_message[position]

    def _stands_alone(self, number: Number, unit: str, position: int) -> bool:
        """Return whether a message has a number without a unit, or with this one."""
        text = self.index.texts[position]
        return any(
            number.values & other.values and _read_unit(text, other) in ("", unit)
            for other in numbers.find_numbers(text)
        )

    def _is_measured(self, unit: str, number: Number) -> bool:
        """Return whether the sources count this unit, and never so many of it."""
        if not unit or number.is_percent:
            return False
        stem = stem_word(unit)
        if stem not in self._values_by_unit:
            self._values_by_unit[stem] = self._collect_unit_values(unit, stem)
        unit_values = self._values_by_unit[stem]
        return bool(unit_values) and not number.values & unit_values

    def _collect_unit_values(self, unit: str, stem: str) -> set[float]:
        """Return the numbers that stand before a unit; none where it is too frequent to tell."""
        positions = self.alignment.postings.get(stem, [])
        for sign in _SIGNS.get(unit, ()):
            positions = [*positions, *self.index.find_messages(sign)]
        if len(positions) > MAX_POSTINGS:
            return set()
        unit_values: set[float] = set()
        for position in positions:
            text = self.index.texts[position]
            for number in numbers.find_numbers(text):
                if stem_word(_read_unit(text, number)) == stem:
                    unit_values |= number.values
        return unit_values

    def _is_derived(self, number: Number, unit: str, before: str, sentence: str) -> bool:
        """Return whether a number is a rounded one, a sum, or one in another unit."""
        if _APPROXIMATE.search(before) and any(
            _is_rounded(value, source_value)
            for value in number.values
            for source_value in self.values | self.composed_values
        ):
            return True
        if stem_word(unit) in _CONVERTIBLE:
            known_values = self.values
            if any(
                round(value * factor, 6) in known_values or round(value / factor, 6) in known_values
                for value in number.values
                for factor in _FACTORS
            ):
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


def _read_unit(text: str, number: Number) -> str:
    """Return the word after a number, or the sign of a currency before it; empty for none."""
    sign = text[: number.start].rstrip()[-1:]
    if sign in _CURRENCY:
        return _CURRENCY[sign]
    match = _UNIT.match(text, number.end)
    unit = match[1].casefold() if match else ""
    unit = _CURRENCY.get(unit, unit)
    return unit if carries_meaning(unit) else ""


def _is_rounded(value: float, source_value: float) -> bool:
    """Return whether a value is close to one of the sources and has fewer digits of its own."""
    if abs(value - source_value) > TOLERANCE * max(abs(source_value), 1):
        return False
    return _count_digits(value) < _count_digits(source_value)


def _count_digits(value: float) -> int:
    return len(f"{value:.10g}".rstrip("0").strip("."))


def _overlaps(start: int, end: int, places: list[tuple[int, int]]) -> bool:
    return any(start < last and first < end for first, last in places)

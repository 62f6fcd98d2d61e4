"""The dates and times of a text, whatever their form: 2026-03-04 is 4 March and 04.03.2026."""

import calendar
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from compaction.memory.core.verify.words import build_word_set
from textkit.calendar import MONTHS, WEEKDAYS, list_names

LEAP_YEAR = 2024  # in place of a year that is not given
_SHORT_WORDS = build_word_set("may mar mon sat sun wed jun sep dec")
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?\.?"
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_DOTTED_DATE = re.compile(r"(?<![\d.])(\d{1,2})\.\s?(\d{1,2})\.(?:\s?(\d{4}|\d{2})(?!\d))?")
_SLASHED_DATE = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})(?:/(\d{4}|\d{2}))?(?![\d/])")
_DAY_FIRST = re.compile(
    rf"(?<!\d){_DAY}(?:\s*(?:-|–|to|bis|until|and|und|or|oder)\s*{_DAY})?\s+"
    rf"(?:of\s+)?({_MONTH})\b\.?(?:,?\s+(\d{{4}})(?!\d))?",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    rf"\b({_MONTH})\b\.?\s+{_DAY}(?!\d|:)(?:\s*(?:-|–|to|until|and|or)\s*{_DAY}(?!\d|:))?"
    r"(?:,?\s+(\d{4})(?!\d))?",
    re.IGNORECASE,
)
_DIGITS_AND_SIGNS = re.compile(r"\d[\d./-]{2,}(?:\s\d[\d.]+)*")
_DATE_SIGN = re.compile(r"\d[./-]\s?\d")
_TIME = re.compile(
    r"(?<![\d:.,])(\d{1,2})(?:[:.](\d{2}))?(?::\d{2})?\s?"
    r"(?:(a\.?m\.?|p\.?m\.?|uhr|o['’]clock)(?!\w)|"
    r"(?<=:\d\d))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A date, or a time of the day in minutes, with its place in the text."""

    text: str
    start: int
    end: int
    days: frozenset[tuple[int, int]] = frozenset()
    """Every pair of month and day that it may mean: 3/4 is in March or in April."""
    year: int | None = None
    minutes: frozenset[int] = frozenset()


def find_dates(text: str) -> Iterator[Moment]:
    """Yield the dates of a text that have a day and a month."""
    for match in _ISO.finditer(text):
        yield from _build_dates(match, match[2], [match[3]], match[1])
    for match in _DOTTED_DATE.finditer(text):
        yield from _build_dates(match, match[2], [match[1]], match[3])
    for match in _SLASHED_DATE.finditer(text):
        yield from _build_dates(match, match[1], [match[2]], match[3], either_way=True)
    for match in _DAY_FIRST.finditer(text):
        month = str(MONTHS[match[3].casefold()])
        yield from _build_dates(match, month, [match[1], match[2]], match[4])
    for match in _MONTH_FIRST.finditer(text):
        month = str(MONTHS[match[1].casefold()])
        yield from _build_dates(match, month, [match[2], match[3]], match[4])


def collect_dates(texts: Iterable[str], word_lists: Iterable[list[str]]) -> Iterator[Moment]:
    """Yield the dates of many texts in lower case, given with the words of each.

    Only what may be a date is looked at closely: to look for dates in every text takes ten times
    longer.
    """
    for text, words in zip(texts, word_lists, strict=True):
        if not MONTHS.keys().isdisjoint(words):
            yield from find_dates(text)
            continue
        for match in _DIGITS_AND_SIGNS.finditer(text):
            if _DATE_SIGN.search(match[0]):
                yield from find_dates(match[0])


def find_times(text: str) -> Iterator[Moment]:
    """Yield the times of the day of a text; 3 o'clock may be in the afternoon."""
    for match in _TIME.finditer(text):
        hour, minute = int(match[1]), int(match[2] or 0)
        mark = (match[3] or "").casefold().replace(".", "")
        if hour > 24 or minute > 59:
            continue
        if mark == "pm" and hour < 12:
            hours = {hour + 12}
        elif mark == "am":
            hours = {hour % 12}
        elif mark:
            hours = {hour, hour + 12} if hour < 12 else {hour}
        else:
            hours = {hour}
        minutes = frozenset(one_hour * 60 + minute for one_hour in hours)
        yield Moment(match[0], match.start(), match.end(), minutes=minutes)


def find_weekdays_and_months(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the names of weekdays and months in a text, with their places.

    Short ones that are also other words, such as `may` and `sun`, are left out unless they are
    written with a capital letter in the middle of a sentence.
    """
    for match in re.finditer(r"[^\W\d_]+", text):
        word = match[0].casefold()
        if word not in MONTHS and word not in WEEKDAYS:
            continue
        is_clear = match[0][0].isupper() and (match.start() > 0 or word not in _SHORT_WORDS)
        if is_clear:
            yield word, match.start(), match.end()


def list_names_of(word: str) -> set[str]:
    """Return all names of a month or a weekday, given by one of them."""
    tables = [table for table in (MONTHS, WEEKDAYS) if word in table]
    return {name for table in tables for name in list_names(table, table[word])}


def list_weekday_names(moments: list[Moment]) -> set[str]:
    """Return the names of the weekdays and months of dates with a year."""
    names: set[str] = set()
    for moment in moments:
        for month, day in moment.days:
            names.update(list_names(MONTHS, month))
            if moment.year is not None:
                weekday = calendar.weekday(moment.year, month, day)
                names.update(list_names(WEEKDAYS, weekday))
    return names


def list_days(moment: Moment) -> list[date]:
    """Return the days of the calendar that a date with a year may mean."""
    if moment.year is None:
        return []
    return [date(moment.year, month, day) for month, day in moment.days]


def _build_dates(
    match: re.Match[str],
    month: str,
    days: list[str | None],
    year_text: str | None,
    *,
    either_way: bool = False,
) -> Iterator[Moment]:
    year = int(year_text) if year_text else None
    if year is not None and year < 100:
        year += 2000
    for day in days:
        if not day:
            continue
        pairs = {(int(month), int(day))}
        if either_way:
            pairs.add((int(day), int(month)))
        valid_pairs = frozenset(pair for pair in pairs if _is_valid(*pair, year))
        if valid_pairs:
            yield Moment(match[0], match.start(), match.end(), days=valid_pairs, year=year)


def _is_valid(month: int, day: int, year: int | None) -> bool:
    return 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year or LEAP_YEAR, month)[1]

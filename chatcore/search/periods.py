"""Find the times that a question names in words: "yesterday", "in March", "letzte Woche"."""

import calendar
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from textkit.calendar import MONTH_NAMES, WEEKDAY_NAMES

_DAYS_AGO = {"today": 0, "heute": 0, "yesterday": 1, "gestern": 1, "vorgestern": 2}
_UNIT_DAYS = {"day": 1, "tag": 1, "week": 7, "woche": 7, "month": 30, "monat": 30}
_UNIT_DAYS |= {"year": 365, "jahr": 365}
_DAY = re.compile(rf"\b({'|'.join(_DAYS_AGO)})\b")
_RELATIVE = re.compile(
    r"\b(this|last|past|diese[nrsm]?|letzte[nrsm]?|vorige[nrsm]?|vergangene[nrsm]?)\s+"
    r"(week|month|year|woche|monat|jahr)\b"
)
_AGO = re.compile(
    r"\b(\d{1,3}|an?|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago\b"
    r"|\bvor\s+(\d{1,3}|eine[mr]|zwei|drei|vier|fünf|sechs)\s+(tag|woche|monat|jahr)(?:en|n|e)?\b"
)
_NUMBERS = {
    number: value
    for value, names in enumerate(
        ("a an one einem einer", "two zwei", "three drei", "four vier", "five fünf", "six sechs"), 1
    )
    for number in names.split()
}
_MONTH = re.compile(rf"\b({'|'.join(MONTH_NAMES)})\b(?:\s+(?:of\s+)?((?:19|20)\d\d))?")
_NOT_MONTH = re.compile(r"\b(?:i|you|he|she|it|we|they|that|this|who)\s+may\b|\bmay\s+(?:i|be)\b")
_WEEKDAY = re.compile(rf"\b({'|'.join(WEEKDAY_NAMES)})\b")
_DATE = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b|\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b")


class Period(NamedTuple):
    """A time from `start` to before `end`."""

    start: datetime
    end: datetime


def find_periods(text: str, now: datetime) -> tuple[Period, ...]:
    """Return the periods before `now` that a text names, in its order of kinds."""
    lower_text = text.lower()
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (
        *_find_days(lower_text, midnight),
        *_find_relative_periods(lower_text, midnight),
        *_find_distances(lower_text, midnight),
        *_find_months(lower_text, midnight),
        *_find_dates(lower_text),
    )


def _find_days(text: str, midnight: datetime) -> Iterator[Period]:
    for match in _DAY.finditer(text):
        days_ago = _DAYS_AGO[match[1]]
        is_day_before = match[1] == "yesterday" and "day before yesterday" in text
        yield _build_days(midnight - timedelta(days=days_ago + is_day_before))
    for match in _WEEKDAY.finditer(text):
        days_ago = (midnight.weekday() - WEEKDAY_NAMES[match[1]]) % 7 or 7
        yield _build_days(midnight - timedelta(days=days_ago))


def _find_relative_periods(text: str, midnight: datetime) -> Iterator[Period]:
    for match in _RELATIVE.finditer(text):
        units_ago = 0 if match[1].startswith(("this", "diese")) else 1
        if match[2] in ("week", "woche"):
            monday = midnight - timedelta(days=midnight.weekday() + 7 * units_ago)
            yield _build_days(monday, 7)
        elif match[2] in ("month", "monat"):
            months = midnight.year * 12 + midnight.month - 1 - units_ago
            yield _build_month(months // 12, months % 12 + 1)
        else:
            yield _build_year(midnight.year - units_ago)


def _find_distances(text: str, midnight: datetime) -> Iterator[Period]:
    for match in _AGO.finditer(text):
        number, unit = match[1] or match[3], match[2] or match[4]
        count = int(number) if number.isdigit() else _NUMBERS[number]
        unit_days = _UNIT_DAYS[unit]
        # "Three weeks ago" may be half a week more or less.
        margin = unit_days // 2
        start = midnight - timedelta(days=count * unit_days + margin)
        yield _build_days(start, 2 * margin + 1)


def _find_months(text: str, midnight: datetime) -> Iterator[Period]:
    for match in _MONTH.finditer(text):
        if match[1] == "may" and _NOT_MONTH.search(text):
            continue
        month = MONTH_NAMES[match[1]]
        is_later = month > midnight.month
        yield _build_month(int(match[2]) if match[2] else midnight.year - is_later, month)


def _find_dates(text: str) -> Iterator[Period]:
    for match in _DATE.finditer(text):
        if match[1]:
            year, month, day = int(match[1]), int(match[2]), int(match[3])
        else:
            year, month, day = int(match[6]), int(match[5]), int(match[4])
        if 1 <= year < datetime.max.year and 1 <= month <= 12 and _has_day(year, month, day):
            yield _build_days(datetime(year, month, day, tzinfo=UTC))


def _has_day(year: int, month: int, day: int) -> bool:
    return 1 <= day <= calendar.monthrange(year, month)[1]


def _build_days(start: datetime, days: int = 1) -> Period:
    return Period(start, start + timedelta(days=days))


def _build_month(year: int, month: int) -> Period:
    return _build_days(datetime(year, month, 1, tzinfo=UTC), calendar.monthrange(year, month)[1])


def _build_year(year: int) -> Period:
    return Period(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))

"""Words that name a day from the day on which they are written: "tomorrow", "next week"."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from textkit.calendar import WEEKDAY_NAMES

_DAYS_AWAY = {
    "today tonight heute": 0,
    "tomorrow morgen tmrw": 1,
    "yesterday gestern": -1,
    "übermorgen": 2,
    "vorgestern": -2,
}
_OFFSETS = {word: days for words, days in _DAYS_AWAY.items() for word in words.split()}
# What other languages say is known to speak of a day near by, and not of which one.
_NEAR = (
    "aujourd'hui aujourd’hui demain hier hoy mañana ayer anteayer oggi domani ieri hoje amanhã "
    "ontem vandaag gisteren dziś jutro wczoraj сегодня завтра вчера bugün yarın dün"
)
_NEAR_UNSPACED = (
    "今日",
    "明日",
    "昨日",
    "今天",
    "明天",
    "昨天",
    "后天",
    "来週",
    "下周",
    "내일",
    "어제",
)
_UNIT_DAYS = {
    "day days tag tage tagen weekend wochenende": 1,
    "week weeks fortnight woche wochen": 7,
    "month months monat monate monaten": 31,
    "year years jahr jahre jahren": 366,
}
_UNITS = {word: days for words, days in _UNIT_DAYS.items() for word in words.split()}
_NUMBERS = {
    word: number
    for number, words in enumerate(
        ("a an one ein eine einem einer", "two zwei", "three drei", "four vier", "five fünf"), 1
    )
    for word in words.split()
}
_POINTER = (
    "this|next|last|coming|past|previous|following|ago|later|in|within|"
    r"diese[nrsm]?|nächste[nrsm]?|letzte[nrsm]?|kommende[nrsm]?|vorige[nrsm]?|vor|nach|binnen"
)
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_SPAN = re.compile(
    rf"\b(?:{_POINTER})\s+(?:(\d{{1,3}}|{'|'.join(_NUMBERS)})\s+)?({_UNIT})\b"
    rf"|\b(\d{{1,3}}|{'|'.join(_NUMBERS)})\s+({_UNIT})\s+(?:ago|later|from\s+now)\b"
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
WEEK = 7


def find_reach(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of days that a text may speak of, counted from the day it is written on."""
    lower_text = text.casefold()
    words = set(_WORD.findall(lower_text))
    for word in words & _OFFSETS.keys():
        yield _OFFSETS[word], _OFFSETS[word]
    if "after tomorrow" in lower_text:
        yield 2, 2
    if "before yesterday" in lower_text:
        yield -2, -2
    is_near = not words.isdisjoint(_NEAR.split())
    if is_near or any(word in lower_text for word in _NEAR_UNSPACED):
        yield -WEEK, WEEK
    for match in _SPAN.finditer(lower_text):
        count_text, unit = match[1] or match[3] or "1", match[2] or match[4]
        count = _NUMBERS.get(count_text) or int(count_text)
        days = (count + 1) * _UNITS[unit]
        yield -days, days


def speaks_of_near_day(text: str) -> bool:
    """Return whether a text names a day that depends on the day on which it was written."""
    words = set(_WORD.findall(text.casefold()))
    return not words.isdisjoint(WEEKDAY_NAMES) or any(find_reach(text))


def may_mean(text: str, written: date, day: date) -> bool:
    """Return whether a text that was written on a day may speak of another day."""
    distance = (day - written) // timedelta(days=1)
    if any(least <= distance <= most for least, most in find_reach(text)):
        return True
    words = set(_WORD.findall(text.casefold()))
    weekdays = {WEEKDAY_NAMES[word] for word in words & WEEKDAY_NAMES.keys()}
    return day.weekday() in weekdays and abs(distance) <= 2 * WEEK

"""Read from a refusal how many seconds the provider asks to wait.

Servers say it in headers and fields of many names, as seconds, milliseconds, lengths of time or
times of day, and in sentences of any language. Headers and fields go first.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from django.utils import timezone

from textkit.durations import find_durations, parse_duration

LONGEST = 86_400.0  # seconds
# A length of time in a sentence without a word for a new try may be another one, so it is believed
# only up to here.
_LONGEST_GUESS = 900.0
_RETRY_WORDS = re.compile(
    r"erneut|wieder|noch\s?mal|r[ée]essa|nouveau|reint[ée]nt|int[ée]nt|de novo|novamente|tente\b"
    r"|riprova|opnieuw|spróbuj|повтор|попроб|tekrar|försök|prøv|yritä|zkuste|próbálja|thử lại"
    r"|coba lagi|重试|重試|再试|再試|再度|再実行|다시|ลอง|أعد|حاول|נסה|पुनः|फिर"
    r"|retry|try|again|wait|resets?\b",
    re.IGNORECASE,
)
_LIMITED_STATUSES = (429, 503, 529)
_FIRST_TIME = 1e9  # seconds since 1970; smaller numbers are lengths of time
_FIRST_TIME_IN_MILLISECONDS = 1e12
# Names in lower case, of letters alone.
_UNIT = (
    r"(?:ins?|after|at|time|delay|date|for|until|s|sec(?:ond)?s?|ms|millis(?:econds)?"
    r"|min(?:ute)?s?)*"
)
_RETRY_NAME = re.compile(
    rf"(?:x|ms|next|suggested|recommended|ratelimit|llm|server)*"
    rf"(?:retry|tryagain|wait|cool(?:ing)?down|backoff|estimated(?=time)|available(?=in|at)){_UNIT}"
)
_RESET_NAME = re.compile(rf"(?:x|rate|limit|ratelimit|quota|usage)*resets?{_UNIT}")
_IN_MILLISECONDS = re.compile(r"(?:ms|millis(?:econds)?)\Z")
_IN_MINUTES = re.compile(r"min(?:ute)?s?\Z")
_LIMIT_HEADER = re.compile(r"rate-?limit")
# Of the proposed standard: `limit=100, remaining=0, reset=30`, and later `"default";r=0;t=30`.
_LIMIT_ITEM = re.compile(
    r"\b(?:remaining|r)=(?P<remaining>\d+)\s*[,;]\s*(?:reset|t)=(?P<seconds>\d+)"
)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?"
)
_HTTP_TIME = re.compile(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")
_WAIT_WORDS = re.compile(
    r"(?:(?:try again|retry|wait|available|resets?)\b[^.;]{0,20}?\b(?:in|after|for)|\bwait) "
    r"(?:about |at least |another )?\Z",
    re.IGNORECASE,
)
_WAIT_WORDS_CHARS = 60


def find_wait(
    *,
    status: int,
    headers: Mapping[str, str],
    objects: Sequence[Mapping[str, object]],
    reason: str,
) -> float | None:
    """Return the seconds that a refusal asks to wait, at most a day, or None.

    `objects` are those of its body, and `reason` is its sentence for people.
    """
    is_limited = status in _LIMITED_STATUSES
    seconds = parse_retry_after(headers)
    if seconds is None:
        seconds = _find_field(objects, _RETRY_NAME)
    if seconds is None:
        seconds = _find_field(objects, _RESET_NAME) or None
    if seconds is None:
        seconds = _find_in_words(reason, may_guess=is_limited)
    if seconds is None and is_limited:
        seconds = _find_reset(headers)
    return seconds if seconds is None else min(seconds, LONGEST)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the headers of a response ask to wait, at most a day, or None.

    `Retry-After` has a number of seconds or a date, and `retry-after-ms` milliseconds.
    """
    names = [name for name in headers if name.lower().endswith("retry-after-ms")]
    names += [name for name in headers if name.lower().endswith("retry-after")]
    for name in names:
        seconds = _read_wait(name, headers[name])
        if seconds is not None:
            return min(max(0.0, seconds), LONGEST)
    return None


def _find_field(
    objects: Iterable[Mapping[str, object]], wanted_name: re.Pattern[str]
) -> float | None:
    """Return the seconds in the first field of such a name that has some."""
    for fields in objects:
        for name, value in fields.items():
            if wanted_name.fullmatch(_simplify(name)):
                seconds = _read_wait(name, value)
                if seconds is not None:
                    return max(0.0, seconds)
    return None


def _simplify(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _read_wait(name: str, value: object) -> float | None:
    """Return the seconds from now that a value names; negative ones are over."""
    if isinstance(value, Mapping):  # of a protocol buffer
        value = value.get("seconds")
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return _read_text(str(value))
    if math.isnan(number):
        return None
    if number >= _FIRST_TIME:
        is_fine = number >= _FIRST_TIME_IN_MILLISECONDS
        return number / (1_000 if is_fine else 1) - timezone.now().timestamp()
    simple_name = _simplify(name)
    if _IN_MILLISECONDS.search(simple_name):
        return number / 1_000
    return number * 60 if _IN_MINUTES.search(simple_name) else number


def _read_text(text: str) -> float | None:
    seconds = parse_duration(text)
    return _measure_time_until(text) if seconds is None else seconds


def _measure_time_until(text: str) -> float | None:
    """Return the seconds until a time, as ISO 8601 or HTTP writes it; without a zone it is UTC."""
    text = text.strip()
    time = None
    with suppress(ValueError, TypeError):
        time = datetime.fromisoformat(re.sub(r" ?(?:UTC|GMT)\Z", "+00:00", text))
    if time is None:
        with suppress(ValueError, TypeError):
            time = parsedate_to_datetime(text)
    if time is None:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - timezone.now()).total_seconds()


def _find_in_words(reason: str, *, may_guess: bool) -> float | None:
    """Return the seconds that a sentence asks to wait.

    With `may_guess` a length of time is taken also where the words before it are not known, and a
    time that is still to come.
    """
    durations = find_durations(reason)
    for duration in durations:
        words = reason[max(0, duration.start - _WAIT_WORDS_CHARS) : duration.start]
        if duration.seconds and _WAIT_WORDS.search(words):
            return duration.seconds
    if not may_guess:
        return None
    times = [match[0] for pattern in (_TIME, _HTTP_TIME) for match in pattern.finditer(reason)]
    waits = [seconds for seconds in map(_measure_time_until, times) if seconds and seconds > 0]
    if waits:
        return min(waits)
    guesses = [each.seconds for each in durations if each.seconds and not each.is_measure]
    if not guesses or (guesses[-1] > _LONGEST_GUESS and not _RETRY_WORDS.search(reason)):
        return None
    return guesses[-1]


def _find_reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the last of the limits that are used up is reset, or None.

    Where no header says what remains, it is the first of them that is reset.
    """
    used_up: list[float] = []
    unknown: list[float] = []
    for name, value in headers.items():
        lower_name = name.lower()
        if not _LIMIT_HEADER.search(lower_name):
            continue
        used_up += (
            float(match["seconds"])
            for match in _LIMIT_ITEM.finditer(value)
            if not int(match["remaining"])
        )
        seconds = _read_wait("reset", value) if "reset" in lower_name else None
        if seconds is None or seconds <= 0:
            continue
        remaining = headers.get(lower_name.replace("reset", "remaining"))
        if remaining is None:
            unknown.append(seconds)
        elif not remaining.strip(" 0."):
            used_up.append(seconds)
    if used_up:
        return max(used_up)
    return min(unknown, default=None)

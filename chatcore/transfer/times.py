"""Moments as programs write them down."""

import contextlib
from datetime import UTC, datetime

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM = 1e11  # as seconds, the year 5138
_MICROSECONDS_FROM = 1e14


def parse_time(value: object) -> datetime | None:
    """Return the moment that seconds, milliseconds, a text in ISO 8601 or MongoDB's form name."""
    if isinstance(value, dict):
        value = value.get("$date", value.get("$numberLong"))
        return parse_time(value)
    if isinstance(value, str):
        moment = _parse_text(value.strip())
    elif isinstance(value, int | float) and not isinstance(value, bool):
        moment = _parse_number(float(value))
    else:
        return None
    return moment if moment and EARLIEST < moment < LATEST else None


def _parse_text(text: str) -> datetime | None:
    with contextlib.suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    with contextlib.suppress(ValueError):
        return _parse_number(float(text))
    return None


def _parse_number(seconds: float) -> datetime | None:
    if abs(seconds) >= _MICROSECONDS_FROM:
        seconds /= 1e6
    elif abs(seconds) >= _MILLISECONDS_FROM:
        seconds /= 1e3
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(seconds, UTC)
    return None

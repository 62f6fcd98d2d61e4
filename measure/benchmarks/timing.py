"""Medians, and the table that shows them."""

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

FLAT = 1.5  # a hundred times the history may cost half as much again; more is growth


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line: milliseconds against a limit, or a ratio against one when `unit` is `×`."""

    name: str
    value: float
    limit: float | None = None
    unit: str = "ms"
    note: str = ""

    @property
    def is_within_limit(self) -> bool:
        """Return True if the value is under its limit or has none."""
        return self.limit is None or self.value < self.limit


def measure_median(work: Callable[[], Any], *, times: int, warm_up: int = 3) -> float:
    """Return the median of several runs in milliseconds. The warm-up runs do not count."""
    for _ in range(warm_up):
        work()
    return statistics.median(measure_once(work) for _ in range(times))


def measure_medians(*works: Callable[[], Any], times: int, warm_up: int = 3) -> list[float]:
    """Return the medians of several functions, run in turns so that the load is equal for each."""
    return measure_in_turns(
        *(partial(measure_once, work) for work in works), times=times, warm_up=warm_up
    )


def measure_in_turns(*measures: Callable[[], float], times: int, warm_up: int = 3) -> list[float]:
    """Return the medians of several functions that return their own measured value."""
    rounds = [[measure() for measure in measures] for _ in range(warm_up + times)][warm_up:]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def measure_once(work: Callable[[], Any]) -> float:
    """Run it once and return the milliseconds that it took."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def format_table(rows: Iterable[Row]) -> str:
    """Format the rows as aligned text."""
    lines = [("what", "median", "limit", "", "note")]
    lines += [
        (
            row.name,
            _format_value(row.value, row.unit),
            _format_limit(row),
            "" if row.is_within_limit else "OVER",
            row.note,
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _format_limit(row: Row) -> str:
    return "" if row.limit is None else f"< {row.limit:g} {row.unit}"


def _format_value(value: float, unit: str) -> str:
    return f"{value:.3f} {unit}" if value < 10 else f"{value:.1f} {unit}"

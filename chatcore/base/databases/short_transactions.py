"""Write many rows in short transactions, so that other writers wait a moment and not minutes.

SQLite has one writer, and PostgreSQL's rows are locked until their transaction ends. SQLite's other
writers try again every so often, so between two transactions there is a pause in which they can.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from django.db import connection, transaction

T = TypeVar("T")

# Seconds that a transaction should take. Nobody may hold SQLite's writer longer than 0.25 s, and a
# transaction can turn out slower than the one before it.
TARGET_SECONDS = 0.05
FIRST_WEIGHT = 50_000
ROW_WEIGHT = 400  # what a row costs besides its text, in characters of text


class ShortTransactions:
    """A series of transactions, each as large as the time that the earlier ones took allows.

    Work is weighed in characters of text, because most of the time goes into the search index.
    """

    def __init__(self) -> None:
        self._max_weight = float(FIRST_WEIGHT)

    def split(self, items: Iterable[T], weigh: Callable[[T], int]) -> Iterator[list[T]]:
        """Yield the items in parts, each for one transaction; a heavy item is a part by itself."""
        part: list[T] = []
        part_weight = 0
        for item in items:
            weight = weigh(item)
            if part and part_weight + weight > self._max_weight:
                yield part
                part = []
                part_weight = 0
            part.append(item)
            part_weight += weight
        if part:
            yield part

    @contextlib.contextmanager
    def open_transaction(self, weight: int) -> Iterator[None]:
        """Open a transaction that does work of this weight, and learn from the time it takes.

        On SQLite the other writers then get as much time as it took.
        """
        with transaction.atomic():
            # Only now, because the wait for other writers says nothing about the work.
            start = time.perf_counter()
            yield
        seconds = time.perf_counter() - start
        self._learn(weight, seconds)
        if connection.vendor == "sqlite":
            time.sleep(seconds)

    def _learn(self, weight: int, seconds: float) -> None:
        """Set the weight of the next transaction.

        It shrinks at once and grows slowly, and a transaction that was small for want of work says
        nothing about large ones.
        """
        affordable_weight = weight * TARGET_SECONDS / max(seconds, 1e-6)
        if affordable_weight < self._max_weight:
            self._max_weight = max(affordable_weight, 1.0)
        elif weight > self._max_weight / 2:
            self._max_weight = min(affordable_weight, self._max_weight * 2)


def weigh_row(text_chars: int) -> int:
    """Return the weight of a row with so many characters of text."""
    return ROW_WEIGHT + text_chars

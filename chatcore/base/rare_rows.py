"""Rows that most installations have none of: a turn need not ask for them each time.

That there are none is remembered for FRESH_SECONDS in this process. A row that this process stores
is seen at once, and a row of another process after FRESH_SECONDS at the latest.
"""

import threading
import time
from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

from django.db import connection, models, transaction

FRESH_SECONDS = 1.5

_lock = threading.Lock()

Row = TypeVar("Row", bound="RareRow", covariant=True)


class RareRows:
    """The rows of a table with a condition, such as the active budgets."""

    _kinds: ClassVar[list["RareRows"]] = []
    _absent: ClassVar[frozenset["RareRows"]] = frozenset()  # what was not there at `_asked_at`
    _asked_at: ClassVar[float] = float("-inf")  # on the monotonic clock
    _changes: ClassVar[int] = 0  # of this process

    def __init__(self, table: str, condition: str) -> None:
        self.sql = f"EXISTS (SELECT 1 FROM {table} WHERE {condition})"  # noqa: S608
        self._kinds.append(self)

    def may_exist(self) -> bool:
        """Return False if there are none; True says only that the table is to be asked."""
        if time.monotonic() - RareRows._asked_at < FRESH_SECONDS:
            return self not in RareRows._absent
        return self not in self._ask()

    @classmethod
    def forget(cls) -> None:
        """Ask again: a row may have been stored."""
        with _lock:
            cls._changes += 1
            cls._asked_at = float("-inf")

    @classmethod
    def count_changes(cls) -> int:
        """Return how often this process has stored a rare row, or may have."""
        return cls._changes

    @classmethod
    def _ask(cls) -> frozenset["RareRows"]:
        """Return the kinds that are absent. All are asked for in one statement."""
        changes, asked_at = cls._changes, time.monotonic()
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(kind.sql for kind in cls._kinds)}")
            answers = cursor.fetchone()
        absent = frozenset(
            kind for kind, answer in zip(cls._kinds, answers, strict=True) if not answer
        )
        with _lock:
            if changes == cls._changes:  # else the answer may be of before a change
                cls._absent, cls._asked_at = absent, asked_at
        return absent


class RareRowQuerySet(models.QuerySet[Row]):
    """Queries of a table with rare rows."""

    def bulk_create(self, objs: Iterable[Row], *args: Any, **kwargs: Any) -> list[Row]:
        """Insert rows."""
        rows = super().bulk_create(objs, *args, **kwargs)
        _note_change()
        return rows

    def update(self, **kwargs: Any) -> int:
        """Change rows."""
        count = super().update(**kwargs)
        _note_change()
        return count


class RareRow(models.Model):
    """A row that `RareRows` ask for. Its manager's queries are `RareRowQuerySet`."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store the row."""
        super().save(*args, **kwargs)
        _note_change()


def _note_change() -> None:
    RareRows.forget()
    # Until the commit, other threads read that there is no such row.
    transaction.on_commit(RareRows.forget)

"""Places for work of one kind in this process, of which each user may hold some."""

import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary


class ProcessFull(Exception):
    """This process does as much at once as it may."""


class UserFull(Exception):
    """The user has as much going on at once as one user may."""


class Slot:
    """One place, until it is released. As a context manager it is released at the end.

    `user_position` is how many the user had with this one when it was taken.
    """

    def __init__(self, slots: "Slots", user_id: object, user_position: int) -> None:
        self.user_position = user_position
        self._slots = slots
        self._user_id = user_id
        self._is_taken = True

    def release(self) -> None:
        """Give the place back; a second call does nothing. Any thread may call this."""
        with self._slots.lock:
            if self._is_taken:
                self._is_taken = False
                self._slots.remove(self._user_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class Slots:
    """The places that are taken, by user. All methods may be called from any thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # held for a few lines of memory only
        self._counts: Counter[object] = Counter()

    def take(
        self,
        user_id: object,
        *,
        process_limit: int,
        user_limit: int,
        count_others: Callable[[], int] = int,
    ) -> Slot:
        """Take a place for the user. Raises ProcessFull and UserFull.

        `count_others` returns how many of the process's places are taken elsewhere. It is called
        under the lock, so that a place which moves there is never counted nowhere.
        """
        with self.lock:
            position = self._counts[user_id] + 1
            if position > user_limit:
                raise UserFull
            if count_others() + self._counts.total() >= process_limit:
                raise ProcessFull
            self._counts[user_id] = position
        return Slot(self, user_id, position)

    def count(self, user_id: object = None) -> int:
        """Return how many places are taken, by all users or by one."""
        with self.lock:
            return self._counts.total() if user_id is None else self._counts[user_id]

    def remove(self, user_id: object) -> None:
        """Take a place of the user away, while the lock is held."""
        self._counts[user_id] -= 1
        if not self._counts[user_id]:
            del self._counts[user_id]


class PersonLocks:
    """A lock for each person, for work that is heavy in memory: one piece of it after the other."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[object, threading.Lock] = WeakValueDictionary()
        self._guard = threading.Lock()  # held for a few lines of memory only

    def get(self, person: object) -> threading.Lock:
        """Return the person's lock. Wait for it without a database connection in hand."""
        with self._guard:
            return self._locks.setdefault(person, threading.Lock())

"""Let the writers of a process take turns, in the order in which they came.

SQLite has one writer at a time. The others poll with sleeps of up to 0.1 s, and who polls at the
right moment wins: with a hundred threads some wait until their time is over, while one that writes
often always finds the file free. In this queue each is woken by the one before. Other processes
still poll, but against one writer of this process only.
"""

import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

_thread_state = threading.local()


@contextlib.contextmanager
def stand_first() -> Iterator[None]:
    """Let the writes of this thread stand first in the line while the context lasts.

    This is for one thread of a process that writes for many. Two would overtake each other, and who
    does it often would starve the others.
    """
    _thread_state.is_first = True
    try:
        yield
    finally:
        _thread_state.is_first = False


class WriterQueue:
    """A lock with a line of waiters. It belongs to an object, a connection, and not to a thread.

    A destroyed owner has released it.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the owner and the line: a forked process has none of its parent's threads."""
        # Reentrant, because the garbage collector may destroy an owner while this thread is inside.
        self._mutex = threading.RLock()
        self._owner: weakref.ref[Any] | None = None
        self._line: deque[_Waiter] = deque()

    def acquire(self, owner: object, *, timeout: float) -> bool:
        """Wait for at most `timeout` seconds; return whether it is the owner's turn now."""
        waiter = _Waiter(weakref.ref(owner, self._release_reference))
        with self._mutex:
            # To join and then to serve the line is right even where the present owner is destroyed
            # between the two statements: the line is served after every change of it.
            if getattr(_thread_state, "is_first", False):
                self._line.appendleft(waiter)
            else:
                self._line.append(waiter)
            self._serve_next()
        if waiter.its_turn.acquire(timeout=timeout):
            return True
        with self._mutex:
            if waiter not in self._line:
                return True  # its turn came just after the time was over
            self._line.remove(waiter)
            return False

    def release(self, owner: object) -> None:
        """Give the turn to the next in line; do nothing if it is not the owner's turn."""
        with self._mutex:
            if self._owner is not None and self._owner() is owner:
                self._owner = None
                self._serve_next()

    def count_waiters(self) -> int:
        """Return how many wait."""
        return len(self._line)

    def _release_reference(self, reference: "weakref.ref[Any]") -> None:
        with self._mutex:
            if self._owner is reference:
                self._owner = None
                self._serve_next()

    def _serve_next(self) -> None:
        if self._owner is None and self._line:
            waiter = self._line.popleft()
            self._owner = waiter.owner
            waiter.its_turn.release()


class _Waiter:
    def __init__(self, owner: "weakref.ref[Any]") -> None:
        self.owner = owner
        self.its_turn = threading.Lock()
        self.its_turn.acquire()


_queues: dict[str, WriterQueue] = {}


def get_queue(path: str) -> WriterQueue:
    """Return the queue of this process for the database file at `path`."""
    return _queues.setdefault(os.path.realpath(path), WriterQueue())


def _reset_queues() -> None:
    for queue in _queues.values():
        queue.reset()


os.register_at_fork(after_in_child=_reset_queues)

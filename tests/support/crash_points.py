"""The places at which a commit can be lost: found by themselves, and named after who commits.

Nothing of this is in the product. A point is the function that commits, such as
`chatcore.turns.control.start_turn`. A statement that writes outside of a transaction is a commit
as well. `watch_commits` hands each to a listener, before and after it is made; the listener may
raise an error of the database, wait, or kill the process.
"""

import contextlib
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

Moment = Literal["before", "after"]
Action = Literal["kill", "lose the connection", "refuse the statement", "delay"]
Listener = Callable[[str, Moment, BaseDatabaseWrapper], None]

PACKAGES = ("chatcore.", "compaction.", "models_registry.")
# These open transactions for others, who are the ones to name.
HELPERS = (
    "chatcore.base.databases.",
    "chatcore.models.statements",
    "chatcore.base.threads",
    "chatcore.base.row_by_row",
)
HELPER_FUNCTIONS = {
    "open_transaction",
    "_open_transaction",
    "append_events",
    "append_events_of_many",
}
WRITES = ("INSERT", "UPDATE", "DELETE")
DELAY_SECONDS = 0.3


@contextlib.contextmanager
def watch_commits(listener: Listener) -> Iterator[None]:
    """Hand each commit of the product in this process to the listener, before and after it."""
    commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]
    execute = CursorWrapper._execute  # type: ignore[attr-defined]

    def commit_watched(wrapper: BaseDatabaseWrapper) -> None:
        point = find_point()
        if point:
            listener(point, "before", wrapper)
        commit(wrapper)
        if point:
            listener(point, "after", wrapper)

    def execute_watched(cursor: Any, sql: Any, *arguments: Any) -> Any:
        is_commit = not cursor.db.in_atomic_block and _is_write(sql)
        point = find_point() if is_commit else None
        if point:
            listener(point, "before", cursor.db)
        result = execute(cursor, sql, *arguments)
        if point:
            listener(point, "after", cursor.db)
        return result

    BaseDatabaseWrapper._commit = commit_watched  # type: ignore[attr-defined]
    CursorWrapper._execute = execute_watched  # type: ignore[attr-defined]
    try:
        yield
    finally:
        BaseDatabaseWrapper._commit = commit  # type: ignore[attr-defined]
        CursorWrapper._execute = execute  # type: ignore[attr-defined]


def find_point() -> str | None:
    """Return the name of the product's function that commits; None if a test does."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("tests.") and not module.startswith("tests.support.crash_points"):
            return None
        is_helper = module.startswith(HELPERS) or frame.f_code.co_name in HELPER_FUNCTIONS
        if module.startswith(PACKAGES) and not is_helper:
            return f"{module}.{_remove_locals(frame.f_code.co_qualname)}"
        frame = frame.f_back
    return None


def _remove_locals(name: str) -> str:
    return name.partition(".<locals>")[0]


def _is_write(sql: object) -> bool:
    return str(sql).lstrip().upper().startswith(WRITES)


@dataclass
class CrashPoint:
    """A fault at one commit: the `number`th that this function makes in other threads' or in this.

    It happens once. `was_visited` says whether it did.
    """

    point: str
    moment: Moment
    action: Action
    number: int = 1
    was_visited: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def visit(self, point: str, moment: Moment, wrapper: BaseDatabaseWrapper) -> None:
        """Act if this is the place."""
        if (point, moment) != (self.point, self.moment):
            return
        with self._lock:
            self.number -= 1
            if self.number:
                return
            self.was_visited = True
        self._act(wrapper)

    def _act(self, wrapper: BaseDatabaseWrapper) -> None:
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "delay":
            time.sleep(DELAY_SECONDS)
        else:
            is_away = self.action == "lose the connection"
            with wrapper.wrap_database_errors:
                raise build_lost_connection() if is_away else build_refusal()


def build_lost_connection() -> Exception:
    """Return the driver's error of a connection that broke, or of a disk that did not answer."""
    if connection.vendor == "postgresql":
        import psycopg

        return psycopg.OperationalError("server closed the connection unexpectedly")
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


def build_refusal() -> Exception:
    """Return the driver's error of a statement that would fail again."""
    if connection.vendor == "postgresql":
        import psycopg

        return psycopg.errors.CheckViolation("a row violates a check")
    error = sqlite3.IntegrityError("CHECK constraint failed")
    error.sqlite_errorcode = sqlite3.SQLITE_CONSTRAINT
    return error

"""SQLite connections whose writes wait in line for the other writers of the process."""

import functools
import sqlite3
import time
from collections.abc import Callable
from typing import Any, TypeVar

from chatcore.databases.writer_queue import WriterQueue, get_queue

T = TypeVar("T")

POLL_SECONDS = 0.001
DEFAULT_TIMEOUT = 5.0  # seconds; that of sqlite3.connect
# The first words of what takes the write lock by itself. A statement of another kind that does, as
# CREATE TABLE, waits as SQLite waits: it polls.
WRITING_WORDS = ("BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "INSERT", "UPDATE", "DELETE", "REPLACE")


class QueueingConnection(sqlite3.Connection):
    """A connection for DATABASES["default"]["OPTIONS"]["factory"].

    `timeout` (seconds) bounds the wait in line as it bounds SQLite's own wait, and the error is the
    same: OperationalError, "database is locked". Databases in memory have no queue.
    """

    def __init__(self, database: Any, timeout: float = DEFAULT_TIMEOUT, **options: Any) -> None:
        super().__init__(database, timeout, **options)
        self._timeout = timeout
        self._queue: WriterQueue | None = None
        self._has_turn = False
        path = self._find_path()
        if path:
            self._queue = get_queue(path)

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        """Return a cursor of the class `factory` that waits for the connection's turn to write."""
        return super().cursor(factory=_build_cursor_class(factory))

    def wait_for_turn(self, query: str) -> float | None:
        """Wait in line if the statement begins to write, and return until when it may wait further.

        Return None for other statements, and inside a transaction. Raises OperationalError.
        """
        if self._queue is None or self._has_turn or not query.lstrip().startswith(WRITING_WORDS):
            return None
        deadline = time.monotonic() + self._timeout
        if not self._queue.acquire(self, timeout=self._timeout):
            raise _build_locked_error()
        self._has_turn = True
        return deadline

    def run_when_unlocked(self, run: Callable[[], T], deadline: float) -> T:
        """Call `run` again and again while a writer of another process is at work.

        SQLite would sleep up to 0.1 s between two tries, and where the other process is busy it
        would hardly ever find the short moment between two transactions.
        """
        self._set_busy_timeout(0)
        try:
            while True:
                try:
                    return run()
                except sqlite3.OperationalError as error:
                    if not _is_locked_error(error) or time.monotonic() >= deadline:
                        raise
                time.sleep(POLL_SECONDS)
        finally:
            self._set_busy_timeout(self._timeout)

    def end_turn(self) -> None:
        """Let the next writer begin, unless this connection's transaction is still open."""
        if self._has_turn and self._queue is not None and not self.in_transaction:
            self._has_turn = False
            self._queue.release(self)

    def commit(self) -> None:
        """Commit the transaction and end the turn."""
        try:
            super().commit()
        finally:
            self.end_turn()

    def rollback(self) -> None:
        """Roll the transaction back and end the turn."""
        try:
            super().rollback()
        finally:
            self.end_turn()

    def close(self) -> None:
        """Close the connection, which rolls back, and end the turn."""
        try:
            super().close()
        finally:
            if self._has_turn and self._queue is not None:
                self._has_turn = False
                self._queue.release(self)

    def _set_busy_timeout(self, seconds: float) -> None:
        super().cursor().execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")

    def _find_path(self) -> str:
        """Return the path of the file; it is empty for a database in memory."""
        return str(self.execute("PRAGMA database_list").fetchone()[2])


class _QueueingCursor(sqlite3.Cursor):
    connection: QueueingConnection

    def execute(self, query: str, *args: Any) -> Any:
        connection = self.connection
        try:
            deadline = connection.wait_for_turn(query)
            if deadline is None:
                return super().execute(query, *args)
            run = functools.partial(super().execute, query, *args)
            return connection.run_when_unlocked(run, deadline)
        finally:
            connection.end_turn()

    def executemany(self, query: str, *args: Any) -> Any:
        connection = self.connection
        try:
            # The rows may come from a generator, so SQLite itself waits for other processes here.
            connection.wait_for_turn(query)
            return super().executemany(query, *args)
        finally:
            connection.end_turn()


@functools.cache
def _build_cursor_class(factory: type[sqlite3.Cursor]) -> type[sqlite3.Cursor]:
    """Return `factory`, as Django's own cursor, whose statements wait in line."""
    return type(f"Queueing{factory.__name__}", (_QueueingCursor, factory), {})


def _is_locked_error(error: sqlite3.OperationalError) -> bool:
    """Return whether another connection has the lock; extended codes have it in the last byte."""
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _build_locked_error() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    error.sqlite_errorname = "SQLITE_BUSY"
    return error

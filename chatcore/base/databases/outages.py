"""Recognize errors of a database, a cache or a process that is away, locked, full or overloaded.

And try the database again for a while, where giving up would lose what was paid for.
"""

import errno
import logging
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from django.db import Error as DatabaseProblem
from django.db import InterfaceError, OperationalError, close_old_connections, connection

logger = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0


class StorageAway(Exception):
    """The storage of files and outputs does not answer (chatcore/files/output_store.py)."""


@dataclass(frozen=True, kw_only=True)
class Outage:
    """Why nothing can be stored or read now, and the seconds after which to try again.

    `status` and `type` are those of the problem that a client gets.
    """

    status: int
    type: str
    detail: str
    retry_after: int


DATABASE_AWAY = Outage(
    status=503,
    type="database_unavailable",
    detail="The database cannot be reached at the moment.",
    retry_after=5,
)


DATABASE_LOCKED = Outage(
    status=503,
    type="database_unavailable",
    detail="The database is busy with other writers.",
    retry_after=2,
)


STORAGE_FULL = Outage(
    status=507,
    type="storage_full",
    detail="The server has no room left to store anything.",
    retry_after=60,
)


# Few things need Redis itself (chatcore/base/caches.py): the others go on in memory.
CACHE_AWAY = Outage(
    status=503,
    type="cache_unavailable",
    detail="The cache cannot be reached at the moment.",
    retry_after=5,
)


NO_DESCRIPTORS = Outage(
    status=503,
    type="overloaded",
    detail="The server has as many connections and files open as it may.",
    retry_after=5,
)


OBJECTS_AWAY = Outage(
    status=503,
    type="storage_unavailable",
    detail="The storage of files cannot be reached at the moment.",
    retry_after=5,
)


# By the primary result code of SQLite. Other codes are errors of a statement, which are ours.
SQLITE_OUTAGES = {
    sqlite3.SQLITE_BUSY: DATABASE_LOCKED,
    sqlite3.SQLITE_LOCKED: DATABASE_LOCKED,
    sqlite3.SQLITE_PROTOCOL: DATABASE_LOCKED,
    sqlite3.SQLITE_INTERRUPT: DATABASE_LOCKED,
    sqlite3.SQLITE_FULL: STORAGE_FULL,
    sqlite3.SQLITE_CANTOPEN: DATABASE_AWAY,
    sqlite3.SQLITE_IOERR: DATABASE_AWAY,
    sqlite3.SQLITE_NOMEM: DATABASE_AWAY,
    sqlite3.SQLITE_READONLY: DATABASE_AWAY,
}


# By the code of PostgreSQL (its documentation, appendix A), or by the code's first characters.
POSTGRESQL_OUTAGES = {
    "53100": STORAGE_FULL,
    "40001": DATABASE_LOCKED,  # serialization failure
    "40P01": DATABASE_LOCKED,  # deadlock
    "55P03": DATABASE_LOCKED,  # lock not available
    "57014": DATABASE_LOCKED,  # statement timeout
    "25006": DATABASE_AWAY,  # read only: a standby after a failover
    "08": DATABASE_AWAY,  # connection failures
    "53": DATABASE_AWAY,  # too many connections, out of memory
    "57P": DATABASE_AWAY,  # shutting down, or starting
    "58": DATABASE_AWAY,  # errors of its disk
}


SYSTEM_OUTAGES = {
    errno.ENOSPC: STORAGE_FULL,
    errno.EDQUOT: STORAGE_FULL,
    errno.EMFILE: NO_DESCRIPTORS,
    errno.ENFILE: NO_DESCRIPTORS,
}


def find_outage(error: BaseException) -> Outage | None:
    """Return the outage behind an error, or None if the error has another reason."""
    for cause in iterate_causes(error):
        outage = _classify_error(cause)
        if outage:
            return outage
    return None


def iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the first cause first: the driver knows more than Django, which wraps its error."""
    if error is not None:
        yield from iterate_causes(error.__cause__)
        yield error


def get_redis_errors() -> tuple[type[Exception], ...]:
    """Return what the client of Redis raises; nothing where it is not in use.

    Without importing it, which takes most processes a fifth of a second for nothing.
    """
    redis = sys.modules.get("redis.exceptions")
    return (redis.RedisError,) if redis else ()


def _classify_error(error: BaseException) -> Outage | None:
    if isinstance(error, OSError):
        return SYSTEM_OUTAGES.get(error.errno or 0)
    if isinstance(error, StorageAway):
        return OBJECTS_AWAY
    if isinstance(error, get_redis_errors()):
        return CACHE_AWAY
    sqlite_code = getattr(error, "sqlite_errorcode", None)
    if sqlite_code is not None:
        return SQLITE_OUTAGES.get(sqlite_code & 0xFF)  # the rest of the number is a detail
    postgresql_code = getattr(error, "sqlstate", None)
    if postgresql_code is not None:
        return _find_by_prefix(postgresql_code)
    # Without a code: the connection could not be made, was lost, or did not come from the pool.
    is_lost = isinstance(error, OperationalError | InterfaceError)
    return DATABASE_AWAY if is_lost and not _has_code(error.__cause__) else None


def _find_by_prefix(code: str) -> Outage | None:
    for length in (5, 3, 2):
        outage = POSTGRESQL_OUTAGES.get(code[:length])
        if outage:
            return outage
    return None


def _has_code(error: BaseException | None) -> bool:
    """Return True if the driver gave a code, so that the error was classified by it."""
    return getattr(error, "sqlite_errorcode", None) is not None or bool(
        getattr(error, "sqlstate", None)
    )


def replace_lost_connections() -> None:
    """Let the pool replace those of its connections that a restarted server has closed.

    Each of them would otherwise refuse somebody, although the database is back. Called after one
    was found broken: a check of each connection when it is taken would cost every request, and the
    pool waits longer and longer between the broken ones.
    """
    pool = getattr(connection, "pool", None)  # of PostgreSQL alone
    if pool:
        pool.check()


def store_patiently(store: Callable[[], T]) -> T:
    """Return what `store` returns; while the database is away, locked or full, call it again.

    `store` is one transaction, or changes nothing. After PATIENCE_SECONDS, and inside a transaction
    of the caller, which the error has ended, the error is raised.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return store()
        except DatabaseProblem as error:
            is_hopeless = connection.in_atomic_block or not find_outage(error)
            if is_hopeless or time.monotonic() > deadline:
                raise
            logger.warning("the database did not answer; it is asked again: %s", error)
        close_old_connections()  # a broken one, and one that the waiting need not hold
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

"""Try the database again for a while, where giving up would lose what was paid for."""

import logging
import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import Error as DatabaseProblem
from django.db import InterfaceError, OperationalError, close_old_connections, connection

logger = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
READ_ONLY = "25006"  # PostgreSQL's code


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
            is_hopeless = connection.in_atomic_block or not is_outage(error)
            if is_hopeless or time.monotonic() > deadline:
                raise
            logger.warning("the database did not answer; it is asked again: %s", error)
        close_old_connections()  # a broken one, and one that the waiting need not hold
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def is_outage(error: BaseException) -> bool:
    """Return True if the same statement may succeed later.

    An OperationalError is an error of the statement itself only on SQLite, with SQLITE_ERROR. After
    a failover PostgreSQL may be read-only for a while, which is no OperationalError.
    """
    if getattr(error.__cause__, "sqlstate", None) == READ_ONLY:
        return True
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    return code != sqlite3.SQLITE_ERROR

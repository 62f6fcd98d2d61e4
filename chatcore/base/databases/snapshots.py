"""Read many rows as they were at one moment, while others write."""

import contextlib
from collections.abc import Iterator

from django.db import connection, transaction


@contextlib.contextmanager
def open_snapshot() -> Iterator[None]:
    """Open a transaction that reads the database as it is now, whatever others commit meanwhile.

    It waits for no writer, and no writer waits for it. Inside another transaction it does nothing.
    """
    if connection.in_atomic_block:
        yield
        return
    with _begin_without_lock(), transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


@contextlib.contextmanager
def _begin_without_lock() -> Iterator[None]:
    """Let this thread's transactions on SQLite begin without the lock that writers take."""
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()  # to connect sets the mode anew
    mode = connection.transaction_mode  # type: ignore[attr-defined]
    connection.transaction_mode = "DEFERRED"  # type: ignore[attr-defined]
    try:
        yield
    finally:
        connection.transaction_mode = mode  # type: ignore[attr-defined]

"""Erase what is deleted from SQLite's files too: from the search indexes and the write-ahead log.

A deleted row is overwritten at once (PRAGMA secure_delete). Two copies of its words stay: the log
has them until it is truncated, and the search index until its segments are merged. FTS5's own
`secure-delete` is not used, because earlier versions of SQLite could then not read the index.

On PostgreSQL both are left to its vacuum and to its own log.
"""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection

from chatcore.search.tables import INDEXES

logger = logging.getLogger(__name__)

MERGE_PAGES = 256  # in one statement, which holds the database's only lock for writers
# A merge that changes no more than its own row had nothing to do (sqlite.org/fts5.html).
NOTHING_MERGED = 2


class ErasureChore:
    """Erases what was deleted since the last round; the first round does so in any case."""

    def __init__(self) -> None:
        self._deleted_count: int | None = None

    def erase(self) -> None:
        """Merge the indexes if messages were deleted, and truncate the write-ahead log."""
        if connection.vendor != "sqlite":
            return
        deleted_count = _count_deleted_messages()
        if deleted_count != self._deleted_count:
            for table in INDEXES:
                _merge_index(table)
            self._deleted_count = deleted_count
        _truncate_log()


def _count_deleted_messages() -> int:
    """Return how many numbers of messages were given that are not in use any more."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'chatcore_message'), 0)"
            " - (SELECT count(*) FROM chatcore_message)"
        )
        return int(cursor.fetchone()[0])


def _merge_index(table: str) -> None:
    """Merge all segments of an index, so that deleted terms are gone; other writers come between.

    The first step, with a negative number, says that all segments are meant.
    """
    merge_sql = f"INSERT INTO {table}({table}, rank) VALUES ('merge', %s)"  # noqa: S608
    pages = -MERGE_PAGES
    while True:
        start = time.monotonic()
        with connection.cursor() as cursor:
            changes = connection.connection.total_changes
            cursor.execute(merge_sql, [pages])
            changes = connection.connection.total_changes - changes
        if changes < NOTHING_MERGED:
            return
        pages = MERGE_PAGES
        time.sleep(time.monotonic() - start)


def _truncate_log() -> None:
    """Write the log into the database and cut it to nothing; leave that while others read it."""
    path = f"{connection.settings_dict['NAME']}-wal"
    if not os.path.exists(path) or not os.path.getsize(path):
        return
    try:
        with _no_wait(), connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except OperationalError:
        logger.debug("the write-ahead log is truncated later", exc_info=True)


@contextmanager
def _no_wait() -> Iterator[None]:
    """Let a statement fail at once where it would hold others up while it waits."""
    seconds = connection.settings_dict["OPTIONS"].get("timeout", 5)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout=0")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")

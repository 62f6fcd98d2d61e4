"""What one turn costs PostgreSQL: commits, statements and bytes of its log."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from django.db import DatabaseError, connection, transaction

from chatcore.models.statements import fetch_rows

T = TypeVar("T")
SETTLING_SECONDS = 2  # until the server's statistics have what was done


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What the database has done so far. `statements` is None without pg_stat_statements."""

    commits: int
    log_bytes: int
    statements: int | None


def measure_turns(hold: Callable[[], T], turns: int) -> tuple[T, str]:
    """Hold a talk of so many turns; return its result, and what a turn cost in words."""
    before = _read_counts()
    result = hold()
    after = _read_counts()
    parts = [
        f"{(after.commits - before.commits) / turns:.1f} transactions",
        f"{(after.log_bytes - before.log_bytes) / turns / 1024:.1f} KB of the server's log",
    ]
    if before.statements is not None and after.statements is not None:
        parts.insert(0, f"{(after.statements - before.statements) / turns:.1f} statements")
    return result, "A turn: " + ", ".join(parts) + "."


def _read_counts() -> Counts:
    time.sleep(SETTLING_SECONDS)
    [(commits, log_bytes)] = fetch_rows(
        """
        SELECT xact_commit, pg_current_wal_insert_lsn() - '0/0'::pg_lsn
        FROM pg_stat_database WHERE datname = current_database()
        """,
        [],
    )
    return Counts(commits=commits, log_bytes=int(log_bytes), statements=_count_statements())


def _count_statements() -> int | None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            cursor.execute(
                "SELECT sum(calls) FROM pg_stat_statements WHERE query !~* '^(begin|commit)'"
                " AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            return int(cursor.fetchone()[0])
    except DatabaseError:
        return None

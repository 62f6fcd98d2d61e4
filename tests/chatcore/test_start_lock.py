"""Processes that start at once prepare the database one after the other."""

import threading

import pytest
from django.db import connection, connections

from chatcore.serving import preparation

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite locks a file"),
]


def test_an_index_is_built_concurrently_under_the_lock_while_others_wait() -> None:
    is_waiting, entries = threading.Event(), []

    def wait_for_the_lock() -> None:
        with preparation._hold_advisory_lock():
            entries.append("other")
        connections.close_all()

    other = threading.Thread(target=wait_for_the_lock, daemon=True)
    with preparation._hold_advisory_lock(), connection.cursor() as cursor:
        other.start()
        while not is_waiting.wait(0.01):
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND query LIKE 'SELECT pg_try_advisory_xact_lock%%'"
            )
            if cursor.fetchone()[0] == 2:
                is_waiting.set()
        # Where it would wait for the lock's own transaction, the two would wait for ever.
        cursor.execute("SET lock_timeout = '20s'")
        cursor.execute("CREATE INDEX CONCURRENTLY of_a_test ON chatcore_turn (started_at)")
        cursor.execute("DROP INDEX CONCURRENTLY of_a_test")
        cursor.execute("RESET lock_timeout")
        entries.append("first")
    other.join()
    assert entries == ["first", "other"]

"""Empty the test database quickly after a test that commits, name it, and watch its locks."""

import concurrent.futures.thread
import selectors
import sys
import threading
from urllib.parse import quote
from weakref import WeakSet

from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from django.test import TransactionTestCase

from tests.support.waiting import wait_until

# Django writes these tables once, when it migrates, and no test changes them.
MIGRATION_TABLES = {"django_migrations", "django_content_type", "auth_permission"}

# Where a thread stands that waits for work.
_WAITING_FILES = {threading.__file__, concurrent.futures.thread.__file__, selectors.__file__}

_open_connections: WeakSet[BaseDatabaseWrapper] = WeakSet()


@receiver(connection_created)
def _note_connection(connection: BaseDatabaseWrapper, **_: object) -> None:
    _open_connections.add(connection)


def close_kept_connections() -> None:
    """Close the connections that idle threads keep, and that of this thread.

    A thread at work closes its own when it has done with it: to close it under a statement that
    runs ends the process.
    """
    frames = sys._current_frames()
    for open_connection in list(_open_connections):
        thread: int = open_connection._thread_ident  # type: ignore[attr-defined]
        frame, is_own = frames.get(thread), thread == threading.get_ident()
        if is_own or frame is None or frame.f_code.co_filename in _WAITING_FILES:
            open_connection.inc_thread_sharing()
            open_connection.close()
            open_connection.dec_thread_sharing()
        else:
            open_connection.close_at = 0


def use_fast_flush() -> None:
    """Replace Django's flush after each test that commits, for the life of this process."""

    def empty_databases(test_case: TransactionTestCase) -> None:
        for alias in test_case._databases_names(  # type: ignore[attr-defined]
            include_mirrors=False
        ):
            empty_database(alias)

    TransactionTestCase._fixture_teardown = empty_databases  # type: ignore[attr-defined]


def empty_database(alias: str = "default") -> None:
    """Delete every row that a test committed, and keep what the migrations of Django itself wrote.

    Django's own `flush` deletes from every table and then creates all permissions again, which
    costs more than most tests. Few tables have rows after a test, and only these are touched.
    """
    connection = connections[alias]
    # Foreign keys are deferred to the commit on both databases, so the order does not matter.
    with transaction.atomic(using=alias), connection.cursor() as cursor:
        for table in _list_filled_tables(connection):
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")


def _list_filled_tables(connection: BaseDatabaseWrapper) -> list[str]:
    tables = connection.introspection.django_table_names(only_existing=False, include_views=False)
    quote = connection.ops.quote_name
    parts = [
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {quote(table)})"
        for table in tables
        if table not in MIGRATION_TABLES
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts))
        return [row[0] for row in cursor.fetchall()]


def build_database_url() -> str:
    """Return the address of the test database, for a process that is to share it."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{database['NAME']}"
    sign_in = f"{database['USER']}:{quote(database['PASSWORD'] or '')}"
    return f"postgres://{sign_in}@{database['HOST']}:{database['PORT']}/{database['NAME']}"


def wait_for_blocked_connection() -> None:
    """Wait until another connection waits for a row that this transaction locks (PostgreSQL)."""

    def count_waiting() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks waiting JOIN pg_locks held USING (transactionid) "
                "WHERE NOT waiting.granted AND held.pid = pg_backend_pid()"
            )
            return int(cursor.fetchone()[0])

    wait_until(count_waiting, what="somebody who waits for a lock of this transaction")

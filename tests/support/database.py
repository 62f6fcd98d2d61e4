"""Empty the test database quickly after a test that commits, read its files, watch its locks."""

import subprocess
import threading
from pathlib import Path
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

_open_connections: WeakSet[BaseDatabaseWrapper] = WeakSet()


@receiver(connection_created)
def _note_connection(connection: BaseDatabaseWrapper, **_: object) -> None:
    _open_connections.add(connection)


def close_kept_connections() -> None:
    """Close the connection of this thread, and let each other thread close its own before its use.

    To close one under a statement that runs in another thread ends the process.
    """
    threads = {thread.ident for thread in threading.enumerate()}
    for open_connection in list(_open_connections):
        thread: int = open_connection._thread_ident  # type: ignore[attr-defined]
        if thread == threading.get_ident() or thread not in threads:
            open_connection.inc_thread_sharing()
            open_connection.close()
            open_connection.dec_thread_sharing()
        else:
            _close_before_use(open_connection)


def move_connections(name: str) -> None:
    """Let every thread connect to another database of the same server or folder from now on."""
    close_kept_connections()
    # Most connections share one dictionary, also those of threads that begin later. A thread with
    # options of its own has a copy, and may outlive the test: the writer of deltas does.
    for each in (connection, *_open_connections):
        each.settings_dict["NAME"] = name


def _close_before_use(connection: BaseDatabaseWrapper) -> None:
    def close_once() -> None:
        if not connection.in_atomic_block:
            vars(connection).pop("close_if_health_check_failed", None)
            connection.close()

    connection.close_if_health_check_failed = close_once  # type: ignore[method-assign]


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


def read_file(path: Path) -> bytes:
    """Return the content of a file of SQLite, read by another process; empty if it is gone.

    Whoever closes a file gives up all locks that its process has on it, SQLite's too. Then the next
    process that closes the database takes itself for the last, and removes the log of this one.
    """
    return subprocess.run(["cat", path], capture_output=True, check=False).stdout


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

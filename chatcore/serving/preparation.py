"""Prepare the database for this version: tables, the model registry, what a file has set.

One process at a time: several may start at once on an empty one.
"""

import contextlib
import fcntl
import io
import os
import time
from collections.abc import Iterator

from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from chatcore.serving.processes import list_foreign_processes
from chatcore.setup.documents import apply_setup_file
from chatcore.setup.sections import SetupRefused

LOCK_ID = 0x43484154434F5245  # of PostgreSQL's advisory lock; any number that others do not use
SECONDS_BETWEEN_TRIES = 0.2
BESIDE_OPTION = "--beside-old-processes"

_is_held = False


@contextlib.contextmanager
def hold_start_lock() -> Iterator[None]:
    """Open a context in which this process alone changes the database's tables. Others wait.

    Inside another one of this process it does nothing.
    """
    global _is_held
    if _is_held:
        yield
        return
    with _hold_lock():
        _is_held = True
        try:
            yield
        finally:
            _is_held = False


def _hold_lock() -> contextlib.AbstractContextManager[None]:
    if connection.vendor == "postgresql":
        return _hold_advisory_lock()
    return _lock_file(f"{connection.settings_dict['NAME']}.start")


@contextlib.contextmanager
def _hold_advisory_lock() -> Iterator[None]:
    import psycopg

    # On a connection of its own: what prepares the database closes and opens the others.
    params = connection.get_connection_params()
    params.pop("cursor_factory", None)
    with psycopg.connect(**params) as locking_connection:
        # Without parameters, and asked again and again: a statement with parameters, or one that
        # waits, keeps its view of the rows. An index that the process with the lock builds
        # concurrently would wait for that view to end, and the two for each other.
        statement = f"SELECT pg_try_advisory_xact_lock({LOCK_ID})"
        while locking_connection.execute(statement).fetchone() != (True,):
            time.sleep(SECONDS_BETWEEN_TRIES)
        yield


@contextlib.contextmanager
def _lock_file(path: str) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # The kernel frees the lock of a process that dies. The file stays, for the next start.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def prepare_database(*, is_beside_others: bool = False) -> None:
    """Migrate, check, and fill what is missing; processes that start at once take turns.

    Raises CommandError if a migration could break a process of another version that lives, unless
    it `is_beside_others` on purpose.
    """
    with hold_start_lock():
        if not is_beside_others:
            _require_no_foreign_process()
        call_command("migrate", verbosity=0, interactive=False)
        call_command("sync_models", verbosity=0, stdout=io.StringIO())
        try:
            apply_setup_file()
        except SetupRefused as error:
            raise CommandError(str(error)) from None
        # Checks come after what they read: the settings may name a policy of the file.
        call_command("check", databases=["default"], stdout=io.StringIO())
        call_command("createcachetable", verbosity=0)


def _require_no_foreign_process() -> None:
    """Raise CommandError if there is something to migrate beside processes of another version."""
    if not count_missing_migrations():
        return
    if processes := list_foreign_processes():
        names = ", ".join(
            f"{each.kind} {each.name} (version {each.version}, migrations {each.migrations})"
            for each in processes
        )
        raise CommandError(
            "Nothing was changed: processes of another version use the database, and its migrations"
            f" may break them: {names}. Stop them and try again, or have `chatcore prepare"
            f" {BESIDE_OPTION}` migrate beside them."
        )


def count_missing_migrations() -> int:
    """Return how many migrations of this version the database lacks."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def require_prepared_database() -> None:
    """Raise CommandError unless the database has the tables of this version."""
    if missing_count := count_missing_migrations():
        raise CommandError(
            f"The database lacks {missing_count} migrations of this version."
            " `chatcore prepare` applies them, and so does --migrate."
        )
    missing_table = io.StringIO()
    call_command("createcachetable", verbosity=0, dry_run=True, stdout=missing_table)
    if missing_table.getvalue():
        raise CommandError(
            "The database lacks the table of the cache; `chatcore prepare` makes it."
        )


def close_connections() -> None:
    """Close the database connections of this process, whose children open their own."""
    for each_connection in connections.all():
        each_connection.close()
        if "pool" in each_connection.settings_dict["OPTIONS"]:
            each_connection.close_pool()  # type: ignore[attr-defined]

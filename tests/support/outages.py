"""Faults of a database, made for real: a lock, a full disk, a cut connection."""

import contextlib
import sqlite3
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
from django.db import close_old_connections, connection

from tests.support.database import close_kept_connections, empty_database
from tests.support.prepared_database import create_database
from tests.support.tcp_proxy import TcpProxy
from tests.support.worker_processes import SERVER, use_database

LOCK_SECONDS = 0.2  # for which a request waits in these tests


@contextlib.contextmanager
def lock_sqlite() -> Iterator[None]:
    """Hold the write lock of the SQLite file, as another process with a long transaction does."""
    with _change_options(timeout=LOCK_SECONDS):
        other = sqlite3.connect(str(connection.settings_dict["NAME"]), isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            yield
        finally:
            other.close()


@contextlib.contextmanager
def fill_sqlite() -> Iterator[None]:
    """Leave the SQLite file no page to grow by, which is the error of a full disk."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
        cursor.execute("PRAGMA page_count")
        page_count = cursor.fetchone()[0]
    init_command = connection.settings_dict["OPTIONS"].get("init_command", "")
    limit = f"PRAGMA max_page_count={page_count};"
    with _change_options(init_command=init_command + limit):
        yield


@contextlib.contextmanager
def forbid_writing() -> Iterator[None]:
    """Let the database take no write, as a standby or a file system that is read only."""
    options = connection.settings_dict["OPTIONS"]
    if connection.vendor == "sqlite":
        init_command = options.get("init_command", "") + "PRAGMA query_only=ON;"
        changes = {"init_command": init_command}
    else:
        flags = f"{options.get('options', '')} -c default_transaction_read_only=on"
        changes = {"options": flags}
    with _change_options(**changes):
        yield


@contextlib.contextmanager
def create_postgresql_database() -> Iterator[str]:
    """Create a database for some tests, and yield its name."""
    name = f"chatcore_outages_{uuid.uuid4().hex[:12]}"
    create_database(SERVER, name)
    try:
        yield name
    finally:
        with psycopg.connect(SERVER, autocommit=True) as server:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextlib.contextmanager
def reach_through_proxy(database: str, **options: Any) -> Iterator[TcpProxy]:
    """Use the PostgreSQL database in this thread through a proxy that the test can cut."""
    with TcpProxy(SERVER) as proxy:
        address = proxy.url.removeprefix("http://")
        url = f"postgres://postgres@{address}/{database}"
        with use_database(url, connect_timeout=3, **options):
            try:
                yield proxy
            finally:
                proxy.reconnect()
                close_old_connections()
                empty_database()
                connection.close()
                if options.get("pool"):
                    connection.close_pool()  # type: ignore[attr-defined]


@contextlib.contextmanager
def _change_options(**changes: object) -> Iterator[None]:
    options = connection.settings_dict["OPTIONS"]
    connection.settings_dict["OPTIONS"] = options | changes
    close_kept_connections()
    try:
        yield
    finally:
        connection.settings_dict["OPTIONS"] = options
        close_kept_connections()

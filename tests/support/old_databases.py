"""Databases that older versions of Chatcore made, opened as the test process's own database."""

import contextlib
import gzip
import json
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection

from tests.support.database import move_connections

FOLDER = Path(__file__).resolve().parents[1] / "chatcore" / "old_databases"
# That of a release, and one that began at an early commit and was upgraded to the release.
RELEASES = ("0.3.0", "012ffea-0.3.0")
TOO_OLD = "22aa757"  # of release 0.2.0
TOKEN = "an-old-token-of-alice-" + "0" * 42
ENCRYPTION_KEY = urlsafe_b64encode(b"the key of the old databases, 32").decode()


def read_answers(name: str) -> dict[str, Any]:
    """Return what the API answered when it was made: `sessions` by name, `answers` by path."""
    kind = "sqlite" if connection.vendor == "sqlite" else "postgres"
    text = gzip.decompress((FOLDER / f"{name}.{kind}.json.gz").read_bytes())
    answers: dict[str, Any] = json.loads(text)
    return answers


@contextlib.contextmanager
def open_old_database(old_name: str, folder: Path) -> Iterator[None]:
    """Let all threads use a copy of the old database, of the kind that the tests use."""
    with create_database(folder) as name:
        if connection.vendor == "sqlite":
            content = gzip.decompress((FOLDER / f"{old_name}.sqlite3.gz").read_bytes())
            Path(name).write_bytes(content)
        else:
            sql = gzip.decompress((FOLDER / f"{old_name}.postgres.sql.gz").read_bytes())
            with connect_to_server(name) as server:
                server.execute(sql)
        with use_database_name(name):
            yield


@contextlib.contextmanager
def create_database(folder: Path) -> Iterator[str]:
    """Create an empty database of the kind that the tests use, and yield its name."""
    if connection.vendor == "sqlite":
        yield str(folder / "other.sqlite3")
        return
    name = f"chatcore_other_{uuid.uuid4().hex[:12]}"
    with connect_to_server("postgres") as server:
        server.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield name
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def connect_to_server(name: str) -> psycopg.Connection:
    """Connect to a PostgreSQL database of the tests' server, without Django."""
    database = connection.settings_dict
    return psycopg.connect(
        dbname=name,
        host=database["HOST"],
        port=database["PORT"] or 5432,
        user=database["USER"],
        password=database["PASSWORD"],
        autocommit=True,
    )


@contextlib.contextmanager
def use_database_name(name: str) -> Iterator[None]:
    """Connect to another database of the same server or folder, in every thread."""
    previous_name = connection.settings_dict["NAME"]
    move_connections(name)
    try:
        yield
    finally:
        move_connections(previous_name)


def read_tables() -> dict[str, dict[Any, dict[str, Any]]]:
    """Return the rows of all models, by table and by their first column, which is the key."""
    with connection.cursor() as cursor:
        return {
            table: _read_rows(cursor, table)
            for table in connection.introspection.django_table_names(only_existing=True)
        }


def _read_rows(cursor: Any, table: str) -> dict[Any, dict[str, Any]]:
    cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return {row[names[0]]: row for row in rows}

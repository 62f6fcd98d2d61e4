"""The tables that apps have left in the database which CHATCORE_WITHOUT leaves out."""

from collections.abc import Iterator

from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from chatcore.extension import OptionalApp, list_absent_apps


def list_left_rows() -> list[tuple[OptionalApp, str]]:
    """Return the absent apps that have rows, each with its first table that has some."""
    rows = []
    for app, tables in _list_left_tables():
        filled_tables = [table for table in tables if _has_rows(table)]
        if filled_tables:
            rows.append((app, filled_tables[0]))
    return rows


def drop_empty_tables() -> None:
    """Drop the tables of absent apps that have no rows; a later migration makes them anew.

    Rights of groups stay, and hold again when the app is back.
    """
    for app, tables in _list_left_tables():
        with transaction.atomic():
            if any(_has_rows(table) for table in tables):
                continue
            with connection.cursor() as cursor:
                for table in tables:
                    cursor.execute(f"DROP TABLE {connection.ops.quote_name(table)}")
            migrations = MigrationRecorder(connection).migration_qs
            migrations.filter(app=app.name).delete()


def _list_left_tables() -> Iterator[tuple[OptionalApp, list[str]]]:
    absent_apps = list_absent_apps()
    existing_tables = connection.introspection.table_names() if absent_apps else []
    for app in absent_apps:
        tables = [table for table in app.tables if table in existing_tables]
        if tables:
            yield app, tables


def _has_rows(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {connection.ops.quote_name(table)} LIMIT 1")  # noqa: S608
        return cursor.fetchone() is not None

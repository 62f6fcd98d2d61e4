"""The tables of apps that CHATCORE_WITHOUT leaves out, and their rows in a file.

The file is JSON of Django's serializers, a line a row: `drop_app` writes it, `load_app` reads it.
"""

import gzip
import os
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from django.apps import apps
from django.core import serializers
from django.core.management.color import no_style
from django.core.serializers.base import DeserializationError, DeserializedObject
from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import DO_NOTHING, SET_NULL, ForeignKey, Model

from chatcore.base.databases.batches import read_in_batches
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


class InvalidArchive(Exception):
    """The file cannot be loaded; the text says why."""


class ExactEncoder(DjangoJSONEncoder):
    """Django's, with whole times: it would cut them to milliseconds."""

    def default(self, o: object) -> object:
        return o.isoformat() if isinstance(o, datetime) else super().default(o)


def list_models(app: OptionalApp) -> list[type[Model]]:
    """Return the models of the app's tables, parents first."""
    all_models = apps.get_app_config(app.name).get_models(include_auto_created=True)
    models = {model._meta.db_table: model for model in all_models}
    return [models[table] for table in reversed(app.tables)]


def write_app_archive(app: OptionalApp, path: Path) -> None:
    """Write all rows into a new file, which only its owner may read. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with gzip.open(file, "wt", encoding="utf-8") as stream:
            for model in list_models(app):
                rows = read_in_batches(model._base_manager.all())
                # Rows of many-to-many tables are rows of their own: either end may be gone later.
                columns = [field.name for field in model._meta.concrete_fields]
                serializers.serialize(
                    "jsonl", rows, stream=stream, cls=ExactEncoder, fields=columns
                )
        file.flush()
        os.fsync(file.fileno())


def load_app_archive(app: OptionalApp, path: Path) -> tuple[int, int]:
    """Store the rows of a file; return how many, and how many were left out.

    Those are left out that belong to a row which is gone, as of somebody who was erased. Raises
    InvalidArchive and OSError.
    """
    models = list_models(app)
    if any(model._base_manager.exists() for model in models):
        raise InvalidArchive(f"The tables of {app.name} have rows already.")
    loaded = left_out = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream, transaction.atomic():
            for row in _read_rows(stream, models):
                if _fit_to_references(row.object):
                    row.save()
                    loaded += 1
                else:
                    left_out += 1
            with connection.cursor() as cursor:
                for statement in connection.ops.sequence_reset_sql(no_style(), models):
                    cursor.execute(statement)
    except (
        gzip.BadGzipFile,
        EOFError,
        zlib.error,
        UnicodeError,
        DeserializationError,
        IntegrityError,
    ) as error:
        raise InvalidArchive(f"{path} is no archive of {app.name}: {error}") from None
    return loaded, left_out


def _read_rows(stream: object, models: list[type[Model]]) -> Iterator[DeserializedObject]:
    for row in serializers.deserialize("jsonl", stream):
        if type(row.object) not in models:
            raise InvalidArchive(f"It has rows of {row.object._meta.label}.")
        yield row


def _fit_to_references(row: Model) -> bool:
    """Clear references to rows that are gone; return False if the row would have gone with them."""
    for field in row._meta.concrete_fields:
        key = getattr(row, field.attname)
        if not isinstance(field, ForeignKey) or key is None:
            continue
        on_delete = field.remote_field.on_delete
        if on_delete is DO_NOTHING:  # as an entry of the audit log, which outlives people
            continue
        if not field.related_model._base_manager.filter(pk=key).exists():
            if on_delete is not SET_NULL:
                return False
            setattr(row, field.attname, None)
    return True

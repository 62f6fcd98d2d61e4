"""Run statements that are written by hand, where the ORM takes longer than the database."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import NoneType
from typing import Any, NamedTuple
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import connection
from django.db.models import (
    AutoField,
    BooleanField,
    CharField,
    Field,
    ForeignKey,
    IntegerField,
    Model,
    TextField,
)


def fetch_rows(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all rows of a statement, with the values as the database gives them.

    SQLite has numbers for booleans, and both databases give JSON as text.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def fetch_row(
    statement: str,
    parameters: Sequence[Any],
    converters: Mapping[str, Callable[[Any], Any]] | None = None,
) -> dict[str, Any] | None:
    """Return the first row of a statement by the names of its columns, or None if there is no row.

    `converters` has a function for each column that the database gives in another form; it is
    applied unless the value is NULL.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        values = cursor.fetchone()
        names = [column[0] for column in cursor.description]
    if values is None:
        return None
    row = dict(zip(names, values, strict=True))
    for name, convert in (converters or {}).items():
        if row[name] is not None:
            row[name] = convert(row[name])
    return row


def adapt_uuid(value: UUID) -> Any:
    """Return a UUID as the database takes it: as text for SQLite, unchanged for PostgreSQL."""
    return value if connection.features.has_native_uuid_field else value.hex


def to_uuid(value: Any) -> UUID:
    """Return what the database stores as a UUID."""
    return value if isinstance(value, UUID) else UUID(value)


def to_time(value: Any) -> datetime:
    """Return what the database stores as a time; SQLite has it without a zone, perhaps as text."""
    time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def adapt_uuids(values: Iterable[UUID]) -> dict[Any, UUID]:
    """Return UUIDs by the form in which the database takes and gives them."""
    if connection.features.has_native_uuid_field:
        return {value: value for value in values}
    return {value.hex: value for value in values}


def insert_row(row: Model) -> None:
    """Store a new row as `save(force_insert=True)` would, and set the primary key it is given.

    The model's own `save()` is not called. Foreign keys are checked by the database, at the commit.
    """
    statement, columns = _build_insert(type(row))
    parameters = [_adapt_value(row, column) for column in columns]
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        if row.pk is None:
            row.pk = cursor.fetchone()[0]
    row._state.adding = False
    row._state.db = connection.alias


def update_row(row: Model, *names: str) -> None:
    """Store these fields of an existing row as `save(update_fields=names)` would.

    The model's own `save()` is not called. Raises ObjectDoesNotExist if the row is deleted.
    """
    statement, columns = _build_update(type(row), names)
    parameters = [_adapt_value(row, column) for column in columns]
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        if not cursor.rowcount:
            raise ObjectDoesNotExist(f"{row._meta.object_name} {row.pk} is deleted.")


class _Column(NamedTuple):
    """A field, and the types of its values that a database takes as they are."""

    field: "Field[Any, Any]"
    plain_types: tuple[type, ...]


@functools.cache
def _build_insert(model: type[Model]) -> tuple[str, list[_Column]]:
    """Return the INSERT of a model, and the columns that give its parameters."""
    meta = model._meta
    has_given_key = isinstance(meta.pk, AutoField)
    fields = [field for field in meta.concrete_fields if not (has_given_key and field is meta.pk)]
    names = ", ".join(f'"{field.column}"' for field in fields)
    placeholders = ", ".join(["%s"] * len(fields))
    returning = f'RETURNING "{meta.pk.column}"' if has_given_key else ""
    statement = f"""
        INSERT INTO {meta.db_table} ({names})
        VALUES ({placeholders})
        {returning}
    """  # noqa: S608
    return statement, [_Column(field, _find_plain_types(field)) for field in fields]


@functools.cache
def _build_update(model: type[Model], names: tuple[str, ...]) -> tuple[str, list[_Column]]:
    """Return the UPDATE of some fields, and the columns that give its parameters, the key last."""
    meta = model._meta
    fields_by_name = {field.name: field for field in meta.concrete_fields}
    fields_by_name |= {field.attname: field for field in meta.concrete_fields}
    fields = [fields_by_name[name] for name in names]
    assignments = ", ".join(f'"{field.column}" = %s' for field in fields)
    statement = f"""
        UPDATE {meta.db_table}
        SET {assignments}
        WHERE "{meta.pk.column}" = %s
    """  # noqa: S608
    return statement, [_Column(field, _find_plain_types(field)) for field in (*fields, meta.pk)]


def _find_plain_types(field: "Field[Any, Any]") -> tuple[type, ...]:
    value_field = field.target_field if isinstance(field, ForeignKey) else field
    if isinstance(value_field, CharField | TextField):
        return (str, NoneType)
    if isinstance(value_field, IntegerField | BooleanField):
        return (int, bool, NoneType)
    return (NoneType,)


def _adapt_value(row: Model, column: _Column) -> Any:
    value = column.field.pre_save(row, add=row._state.adding)
    # To ask the field takes several microseconds, and most columns of a message are empty.
    if type(value) in column.plain_types:
        return value
    return column.field.get_db_prep_save(value, connection)

"""Queries whose text is written once a process: the ORM takes longer to write one than the database to answer it."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet, UUIDField

Value = UUID | int | str
_UUID_FIELD = UUIDField()

# Values that stand for a parameter while the text is written, and are found again among all that it has.
_SAMPLE_VALUES: dict[type, Callable[[int], Value]] = {
    UUID: lambda place: UUID(int=(0xA5 << 120) + place),
    int: lambda place: 2_000_000_000 + place,
    str: lambda place: f"a parameter, number {place}",
}


class PreparedQuery:
    """The first row of a query, asked for again and again with other values.

    `make` builds the query (of `values()`) from values of these `kinds`, each used once; its text is the same whatever they are.
    """

    def __init__(self, build_query: Callable[..., QuerySet[Any, Any]], *value_types: type) -> None:
        self._build_query, self._value_types = build_query, value_types

    def fetch_first(self, *values: Value) -> dict[str, Any] | None:
        """The row by its names, as `values()` gives it; None where nothing is found. One query."""
        sql, parameters, columns, converters = self._statement
        with connection.cursor() as cursor:
            cursor.execute(
                sql,
                [
                    _adapt_value(values[at], self._value_types[at]) if place else at
                    for place, at in parameters
                ],
            )
            record = cursor.fetchone()
        if record is None:
            return None
        row = list(record)
        for place, (steps, expression) in converters.items():
            for step in steps:
                row[place] = step(row[place], expression, connection)
        return dict(zip(columns, row, strict=True))

    @cached_property
    def _statement(self) -> tuple[str, Sequence[tuple[bool, Any]], Sequence[str], dict[int, Any]]:
        """The text; its parameters, as places among the values or as they are; the columns; and what the ORM makes of each."""
        sample_values = [
            _SAMPLE_VALUES[kind](place) for place, kind in enumerate(self._value_types)
        ]
        query = self._build_query(*sample_values)[:1].query
        compiler = query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        positions = {
            _adapt_value(value, kind): place
            for place, (value, kind) in enumerate(
                zip(sample_values, self._value_types, strict=True)
            )
        }
        slots = [(value in positions, positions.get(value, value)) for value in parameters]
        assert sorted(at for place, at in slots if place) == list(range(len(sample_values))), sql
        return (
            sql,
            slots,
            list(query.selected or ()),
            compiler.get_converters([column for column, *_ in compiler.select]),
        )


def _adapt_value(value: Value, value_type: type) -> Any:
    return _UUID_FIELD.get_db_prep_value(value, connection) if value_type is UUID else value

"""Queries whose text is written once a process: the ORM takes longer to write one than the database to answer it."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet, UUIDField

Value = UUID | int | str
_UUID = UUIDField()

# Values that stand for a parameter while the text is written, and are found again among all that it has.
_STRANGE: dict[type, Callable[[int], Value]] = {
    UUID: lambda place: UUID(int=(0xA5 << 120) + place),
    int: lambda place: 2_000_000_000 + place,
    str: lambda place: f"a parameter, number {place}",
}


class Prepared:
    """The first row of a query, asked for again and again with other values.

    `make` builds the query (of `values()`) from values of these `kinds`, each used once; its text is the same whatever they are.
    """

    def __init__(self, make: Callable[..., QuerySet[Any, Any]], *kinds: type) -> None:
        self._make, self._kinds = make, kinds

    def first(self, *values: Value) -> dict[str, Any] | None:
        """The row by its names, as `values()` gives it; None where nothing is found. One query."""
        sql, given, names, converters = self._written
        with connection.cursor() as cursor:
            cursor.execute(
                sql, [_adapted(values[at], self._kinds[at]) if place else at for place, at in given]
            )
            found = cursor.fetchone()
        if found is None:
            return None
        row = list(found)
        for place, (steps, expression) in converters.items():
            for step in steps:
                row[place] = step(row[place], expression, connection)
        return dict(zip(names, row, strict=True))

    @cached_property
    def _written(self) -> tuple[str, Sequence[tuple[bool, Any]], Sequence[str], dict[int, Any]]:
        """The text; its parameters, as places among the values or as they are; the columns; and what the ORM makes of each."""
        strange = [_STRANGE[kind](place) for place, kind in enumerate(self._kinds)]
        query = self._make(*strange)[:1].query
        compiler = query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        places = {
            _adapted(value, kind): place
            for place, (value, kind) in enumerate(zip(strange, self._kinds, strict=True))
        }
        given = [(value in places, places.get(value, value)) for value in parameters]
        assert sorted(at for place, at in given if place) == list(range(len(strange))), sql
        return (
            sql,
            given,
            list(query.selected or ()),
            compiler.get_converters([column for column, *_ in compiler.select]),
        )


def _adapted(value: Value, kind: type) -> Any:
    return _UUID.get_db_prep_value(value, connection) if kind is UUID else value

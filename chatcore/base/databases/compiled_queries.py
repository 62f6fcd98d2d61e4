"""Queries of the ORM that are compiled at their first use, and then only run.

Django compiles a query each time, which takes longer than to run it: 0.3 to 2 ms of processor time.
A request of a client makes the same few each time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import QuerySet
from django.db.models.query import ModelIterable, get_related_populators
from django.db.models.sql.compiler import SQLCompiler

Row = TypeVar("Row")
Rows = Sequence[Sequence[Any]]
Compiled = tuple[str, Sequence[Any], Callable[[Rows], Iterator[Row]]]
MARKS: dict[type, Callable[[], object]] = {
    UUID: uuid4,
    str: lambda: uuid4().hex,
    int: lambda: uuid4().int >> 98,  # 30 bits, which each column of numbers has room for
}


@dataclass(frozen=True)
class _Argument:
    """The place of an argument among the parameters of a statement."""

    index: int


class CompiledQuery(Generic[Row]):
    """A query whose only parts that change are the arguments of `build`, each always of one type.

    What depends on something else is no such query: a condition with the current time, or a setting
    that tests change.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Row]]) -> None:
        self._build = build
        self._compiled: dict[str, Compiled[Row]] = {}  # by the kind of database

    def fetch(self, *arguments: UUID | str | int | None) -> list[Row]:
        """Return the rows that the query set of `build` would have for these arguments.

        They are rows of its model, with those that `select_related` names, or tuples.
        """
        compiled = self._compiled.get(connection.vendor)
        if compiled is None:
            compiled = self._compile([MARKS[type(argument)]() for argument in arguments])
            self._compiled[connection.vendor] = compiled
        statement, parameters, build_rows = compiled
        values = [_adapt(argument) for argument in arguments]
        with connection.cursor() as cursor:
            cursor.execute(
                statement,
                [
                    values[each.index] if isinstance(each, _Argument) else each
                    for each in parameters
                ],
            )
            rows = cursor.fetchall()
        return list(build_rows(rows)) if rows else []

    def _compile(self, marks: Sequence[object]) -> "Compiled[Row]":
        """Return the statement, its parameters, and what makes objects of its rows."""
        query_set = self._build(*marks)
        compiler = query_set.query.get_compiler(connection=connection)
        statement, parameters = compiler.as_sql()
        # What converts values must not hold the connection of this thread.
        compiler.connection = connection.copy()
        converters = compiler.get_converters([column for column, *_ in compiler.select])
        makes_objects = issubclass(query_set._iterable_class, ModelIterable)  # noqa: SLF001
        make = _prepare_objects(compiler) if makes_objects else tuple
        places = {_adapt(mark): _Argument(index) for index, mark in enumerate(marks)}

        def build_rows(rows: Rows) -> Iterator[Row]:
            return map(make, compiler.apply_converters(rows, converters))

        return statement, [places.get(value, value) for value in parameters], build_rows


def _prepare_objects(compiler: SQLCompiler) -> Callable[[Sequence[Any]], Any]:
    """Return what makes an object of a row, as Django's `ModelIterable` does."""
    info = compiler.klass_info
    assert info
    start, end = info["select_fields"][0], info["select_fields"][-1] + 1
    names = [column.target.attname for column, *_ in compiler.select[start:end]]
    populators = get_related_populators(info, compiler.select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]  # Django 6

    def make_object(row: Sequence[Any]) -> Any:
        instance = info["model"].from_db(DEFAULT_DB_ALIAS, names, row[start:end])
        for populator in populators:
            populator.populate(row, instance)
        return instance

    return make_object


def _adapt(value: Any) -> Any:
    """Return an argument as the database takes it: SQLite has UUIDs as text."""
    is_text = isinstance(value, UUID) and not connection.features.has_native_uuid_field
    return value.hex if is_text else value

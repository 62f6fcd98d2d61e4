"""Note the statements of all threads, and the errors that the database answered some with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created


@dataclass
class Statements:
    """What was executed. Methods of lists are safe in threads."""

    texts: list[str] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    def note(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.texts.append(sql)
        try:
            return execute(sql, params, many, context)
        except Exception as error:
            self.errors.append(error)
            raise

    def count(self, verb: str) -> int:
        return sum(text.startswith(verb) for text in self.texts)


@contextmanager
def note_statements() -> Iterator[Statements]:
    """Note what this thread executes, and each one that connects meanwhile."""
    statements = Statements()
    watched: list[BaseDatabaseWrapper] = []

    def watch(connection: BaseDatabaseWrapper, **_: object) -> None:
        if connection not in watched:  # it may have been connected before
            watched.append(connection)
            connection.execute_wrappers.append(statements.note)

    connection_created.connect(watch)
    # Not `django.db.connection`, which equals the connection of whichever thread compares it.
    watch(connections["default"])
    try:
        yield statements
    finally:
        connection_created.disconnect(watch)
        for each in watched:
            each.execute_wrappers.remove(statements.note)

"""Constants that stand in a statement itself."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Value
from django.db.models.sql.compiler import SQLCompiler


class Literal(Value):
    """A constant of this code, which is written into the statement and is no parameter of it.

    SQLite uses an index with a condition only if the statement shows that it fulfills it.
    """

    value: str

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        """Return the constant in quotes."""
        return "'{}'".format(self.value.replace("'", "''").replace("%", "%%")), []

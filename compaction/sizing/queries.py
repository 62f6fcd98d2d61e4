"""Run the statements that every measurement needs, written by hand.

The ORM takes longer to compile them than the database to run them.

Each stands beside the query of the ORM that it replaces, in a comment;
tests/compaction/test_queries.py compares both.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Field, ForeignKey, UUIDField

from compaction.models import CompactionRun, ModelRatio, SessionState

_STATE_FIELDS: "Sequence[Field[Any, Any]]" = SessionState._meta.concrete_fields

# SessionState.objects.filter(pk=session_id)
_STATE_SQL = f"""
    SELECT {", ".join(str(field.column) for field in _STATE_FIELDS)}
    FROM {SessionState._meta.db_table}
    WHERE session_id = %s
"""  # noqa: S608

# CompactionRun.objects.filter(session_id=session_id, status="running", announced=True).exists()
_RUNNING_SUMMARY_SQL = f"""
    SELECT 1
    FROM {CompactionRun._meta.db_table}
    WHERE session_id = %s AND status = '{CompactionRun.Status.RUNNING}' AND announced
    LIMIT 1
"""  # noqa: S608

# ModelRatio.objects.filter(model=model).values("ratio", "window", "registered", "samples")
_RATIO_SQL = f"""
    SELECT ratio, "window", registered, samples
    FROM {ModelRatio._meta.db_table}
    WHERE model = %s
"""  # noqa: S608


def load_session_state(session_id: UUID) -> SessionState:
    """Return the session's state; a new one, which is not stored, if nothing has happened yet."""
    row = fetch_row(_STATE_SQL, [adapt_uuid(session_id)])
    if row is None:
        return SessionState(session_id=session_id)
    values = [_convert_value(row[str(field.column)], field) for field in _STATE_FIELDS]
    return SessionState.from_db(
        connection.alias, [field.attname for field in _STATE_FIELDS], values
    )


def is_summary_running(session_id: UUID) -> bool:
    """Return True while a run works on the session whose start was announced."""
    return fetch_row(_RUNNING_SUMMARY_SQL, [adapt_uuid(session_id)]) is not None


def load_ratio_row(model: str) -> dict[str, Any] | None:
    """Return ratio, window, registered and samples of a model's ModelRatio, if it has one."""
    return fetch_row(_RATIO_SQL, [model])


def fetch_row(
    statement: str,
    parameters: Sequence[Any],
    converters: Mapping[str, Callable[[Any], Any]] | None = None,
) -> dict[str, Any] | None:
    """Return the first row of a statement by the names of its columns, or None if there is no row.

    Databases give some types in their own form: SQLite has numbers for booleans, and both have text
    for JSON. `converters` has a function for each such column, which is applied unless the value is
    NULL.
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
    return _UUID_FIELD.get_db_prep_value(value, connection)


_UUID_FIELD = UUIDField()


def _convert_value(value: Any, field: "Field[Any, Any]") -> Any:
    """Convert a value as the ORM does; SQLite has no times, UUIDs and booleans."""
    # A relation holds values of the field that it points to.
    value_field = field.target_field if isinstance(field, ForeignKey) else field
    column = value_field.cached_col
    for convert in connection.ops.get_db_converters(column):
        value = convert(value, column, connection)
    for convert in column.get_db_converters(connection):
        value = convert(value, column, connection)
    return value

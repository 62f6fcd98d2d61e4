"""Run the statements that every measurement needs, written by hand.

The ORM takes longer to compile them than the database to run them.

Each stands beside the query of the ORM that it replaces, in a comment;
tests/compaction/test_queries.py compares both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Field, ForeignKey, UUIDField

from compaction.models import CompactionRun, ModelRatio, SessionState

RATIO_NAMES = ("ratio", "window", "registered", "samples", "window_learned_at")
_STATE_FIELDS: "Sequence[Field[Any, Any]]" = SessionState._meta.concrete_fields

# SessionState.objects.filter(pk=session_id)
_STATE_SQL = f"""
    SELECT {", ".join(str(field.column) for field in _STATE_FIELDS)}
    FROM {SessionState._meta.db_table}
    WHERE session_id = %s
"""  # noqa: S608

# ModelRatio.objects.filter(model=model).values("ratio", "window", "registered", "samples", …)
_RATIO_SQL = f"""
    SELECT ratio, "window", registered, samples, window_learned_at
    FROM {ModelRatio._meta.db_table}
    WHERE model = %s
"""  # noqa: S608

# Both of these, and CompactionRun.objects.filter(session_id=session_id, status="running",
#     announced=True).exists()
_RECORDS_SQL = f"""
    SELECT
        {", ".join(f"state.{field.column}" for field in _STATE_FIELDS)},
        model.model AS model, model.ratio AS ratio, model."window" AS "window",
        model.registered AS registered, model.samples AS samples,
        model.window_learned_at AS window_learned_at,
        EXISTS (SELECT 1 FROM {CompactionRun._meta.db_table} run
            WHERE run.session_id = %s AND run.status IN ('queued', 'running')
                AND run.status = '{CompactionRun.Status.RUNNING}' AND run.announced)
            AS is_summary_running
    FROM (SELECT 1 AS one) only_row
    LEFT JOIN {SessionState._meta.db_table} state ON state.session_id = %s
    LEFT JOIN {ModelRatio._meta.db_table} model ON model.model = %s
"""  # noqa: S608


@dataclass(frozen=True, kw_only=True)
class Records:
    """What compaction has stored about a session and its model.

    `ratio_row` has the ratio, window, registered and samples of the model's ModelRatio.
    `is_summary_running` is True while a run works on the session whose start was announced.
    """

    state: SessionState
    ratio_row: dict[str, Any] | None
    is_summary_running: bool


def load_session_state(session_id: UUID) -> SessionState:
    """Return the session's state; a new one, which is not stored, if nothing has happened yet."""
    return _build_state(session_id, fetch_row(_STATE_SQL, [adapt_uuid(session_id)]))


def load_records(session_id: UUID, model: str) -> Records:
    """Return all that is stored about a session and its model, in one query."""
    session_key = adapt_uuid(session_id)
    row = fetch_row(_RECORDS_SQL, [session_key, session_key, model])
    assert row is not None
    return Records(
        state=_build_state(session_id, row if row["session_id"] is not None else None),
        ratio_row={name: row[name] for name in RATIO_NAMES} if row["model"] is not None else None,
        is_summary_running=bool(row["is_summary_running"]),
    )


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
        cursor.execute(_shorten(statement), parameters)
        values = cursor.fetchone()
        names = [column[0] for column in cursor.description]
    if values is None:
        return None
    row = dict(zip(names, values, strict=True))
    for name, convert in (converters or {}).items():
        if row[name] is not None:
            row[name] = convert(row[name])
    return row


@cache
def _shorten(statement: str) -> str:
    """Return a statement without indentation; Django's SQLite backend searches it at each call."""
    return " ".join(statement.split())


def adapt_uuid(value: UUID) -> Any:
    """Return a UUID as the database takes it: as text for SQLite, unchanged for PostgreSQL."""
    return _UUID_FIELD.get_db_prep_value(value, connection)


_UUID_FIELD = UUIDField()


def _build_state(session_id: UUID, row: Mapping[str, Any] | None) -> SessionState:
    if row is None:
        return SessionState(session_id=session_id)
    values = [_convert_value(row[str(field.column)], field) for field in _STATE_FIELDS]
    return SessionState.from_db(
        connection.alias, [field.attname for field in _STATE_FIELDS], values
    )


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

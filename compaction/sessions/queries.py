"""Load what compaction has stored about a session and its model.

Every check needs all of it. The ORM has no join between rows of which each may be missing: it takes
three statements and 1.3 ms of processor time instead of one and 0.1. So that one is by hand, and
stands here because chatcore, which has the others (chatcore/models/statements.py), knows no table
of ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any
from uuid import UUID

from django.db import connection

from compaction.models import CompactionRun, ModelRatio, SessionState

RATIO_NAMES = ("ratio", "window", "registered", "samples", "window_learned_at")

# SessionState.objects.filter(pk=session_id), ModelRatio.objects.filter(model=model), and
# CompactionRun.objects.filter(session_id=session_id, status="running", announced=True).exists()
_RECORDS_SQL = f"""
    SELECT
        {", ".join(f"state.{field.column}" for field in SessionState._meta.concrete_fields)},
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

    `ratio` has the columns RATIO_NAMES only. `is_summary_running` is True while a run works on the
    session whose start was announced.
    """

    state: SessionState
    ratio: ModelRatio | None
    is_summary_running: bool


def load_session_state(session_id: UUID) -> SessionState:
    """Return the session's state; a new one, which is not stored, if nothing has happened yet."""
    state = SessionState.objects.filter(pk=session_id).first()
    return state or SessionState(session_id=session_id)


def load_records(session_id: UUID, model: str) -> Records:
    """Return all that is stored about a session and its model, in one query."""
    session_key = SessionState._meta.pk.get_db_prep_value(session_id, connection)
    [row] = SessionState.objects.raw(_RECORDS_SQL, [session_key, session_key, model])
    columns = vars(row)
    return Records(
        state=SessionState(session_id=session_id) if row.session_id is None else row,
        ratio=_build_ratio(columns) if columns["model"] else None,
        is_summary_running=bool(columns["is_summary_running"]),
    )


def _build_ratio(columns: Mapping[str, Any]) -> ModelRatio:
    ratio = ModelRatio(**{name: columns[name] for name in RATIO_NAMES})
    learned_at = ratio.window_learned_at
    if learned_at and learned_at.tzinfo is None:  # as SQLite gives it
        ratio.window_learned_at = learned_at.replace(tzinfo=UTC)
    return ratio

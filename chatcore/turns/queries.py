"""Run the statements with which every turn and every write of deltas begins, written by hand.

The ORM would take longer to compile them, or to build objects, than the database to run them. Those
of a turn stand beside the query of the ORM that they replace, in a comment;
tests/chatcore/test_turn_queries.py compares both. tests/chatcore/test_turns_cut_short.py and
tests/chatcore/test_lock_order.py show what the statement of the deltas locks.
"""

from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from chatcore.models import Session, Turn
from chatcore.statements import adapt_uuid, adapt_uuids, fetch_rows, to_uuid

# Turn.objects.filter(session=session_id, status__in=Turn.OPEN_STATUSES). SQLite uses the index of
# open turns only if the statement itself has the same list, which the ORM gives as parameters.
_OPEN_TURN_SQL = """
    SELECT id, status FROM chatcore_turn
    WHERE session_id = %s AND status IN ('running', 'waiting')
"""

# Turn.objects.filter(session=session_id, idempotency_key=key)
_TURN_BY_KEY_SQL = """
    SELECT id FROM chatcore_turn
    WHERE session_id = %s AND idempotency_key = %s
"""

# Turn.objects.select_for_update(no_key=True).filter(pk=turn_id, status="running").exists()
_LOCK_RUNNING_SQL = """
    SELECT cancel_requested FROM chatcore_turn WHERE id = %s AND status = 'running'
"""

_RUNNING_SQL = f"""
    SELECT turn.id
    FROM {Turn._meta.db_table} turn
    JOIN {Session._meta.db_table} session ON session.id = turn.session_id
    WHERE turn.status = '{Turn.Status.RUNNING}' AND turn.id IN
"""  # noqa: S608


class LockedTurn(NamedTuple):
    """What the lock of a running turn shows of it."""

    is_cancel_requested: bool


class OpenTurn(NamedTuple):
    """The turn of a session that runs, or waits for its client."""

    id: UUID
    status: str


def find_open_turn(session_id: UUID) -> OpenTurn | None:
    """Return the open turn of a session, if it has one."""
    for turn_id, status in fetch_rows(_OPEN_TURN_SQL, [adapt_uuid(session_id)]):
        return OpenTurn(to_uuid(turn_id), status)
    return None


def find_turn_by_key(session_id: UUID, idempotency_key: str) -> UUID | None:
    """Return the id of the turn that began with this idempotency key."""
    for (turn_id,) in fetch_rows(_TURN_BY_KEY_SQL, [adapt_uuid(session_id), idempotency_key]):
        return to_uuid(turn_id)
    return None


def lock_if_running(turn_id: UUID) -> LockedTurn | None:
    """Lock the turn's row until the transaction ends; return None if it is not running."""
    statement = _LOCK_RUNNING_SQL
    if connection.vendor == "postgresql":
        statement += " FOR NO KEY UPDATE"
    for (is_cancel_requested,) in fetch_rows(statement, [adapt_uuid(turn_id)]):
        return LockedTurn(bool(is_cancel_requested))
    return None


def lock_free_turns(turn_ids: Collection[UUID]) -> set[UUID]:
    """Lock these turns with their sessions, and return those that run and are free.

    Rows that another transaction has locked are left out: a long one must not hold up the answers
    of all other sessions. Who never waits is in no deadlock either, so the order of the rows does
    not matter here. SQLite locks the whole database when the transaction begins.
    """
    ids = adapt_uuids(turn_ids)
    statement = f"{_RUNNING_SQL} ({', '.join(['%s'] * len(ids))})"
    if connection.vendor == "postgresql":
        statement += " FOR NO KEY UPDATE OF turn, session SKIP LOCKED"
    return {ids[row_id] for (row_id,) in fetch_rows(statement, list(ids))}

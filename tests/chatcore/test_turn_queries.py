"""What every turn asks for first: the open turn of its session, and the lock of its own row."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatcore.models import Session, Turn, statements
from chatcore.turns import capacity, leases

pytestmark = pytest.mark.django_db


def create_turn(session: Session, status: str) -> Turn:
    lease_end = timezone.now() + timedelta(seconds=30)
    return Turn.objects.create(session=session, status=status, lease_until=lease_end)


def explain(statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        return "\n".join(row[3] for row in cursor.fetchall())


@pytest.mark.parametrize("status", Turn.Status.values)
def test_the_open_turn_is_the_one_that_the_orm_finds(session: Session, status: str) -> None:
    create_turn(session, "completed")
    turn = create_turn(session, status)
    stored_turn = session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    open_turn = leases.find_open_turn(session.pk)
    assert (open_turn is None) == (stored_turn is None)
    if open_turn:
        assert open_turn == (turn.pk, status)


def test_open_and_running_turns_are_found_without_reading_the_others(session: Session) -> None:
    with CaptureQueriesContext(connection) as captured:
        leases.find_open_turn(session.pk)
        with capacity.reserve_turn(session.owner_id):
            pass
    if connection.vendor == "sqlite":  # PostgreSQL plans by the sizes of tables; these are empty
        plans = [explain(query["sql"]) for query in captured if "chatcore_turn" in query["sql"]]
        indexes = ("open_turns_of_a_session", "one_running_turn_a_session")
        assert all(index in plan for index, plan in zip(indexes, plans, strict=True))


@pytest.mark.parametrize("status", Turn.Status.values)
def test_only_a_running_turn_is_locked(session: Session, status: str) -> None:
    turn = create_turn(session, status)
    if status == "running":
        assert leases.lock_running_turn(turn.pk)
        assert statements.lock_free_turns([turn.pk, uuid.uuid4()]) == {turn.pk}
    else:
        with pytest.raises(leases.TurnLost):
            leases.lock_running_turn(turn.pk)
        assert statements.lock_free_turns([turn.pk]) == set()


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"params": {"max_tokens": 5}},
        {"overhead_since": timezone.now()},
        {"auto_compact": False},
        {"compact_threshold": 0.5},
        {"policy": "chatcore"},
        {"context_version": 7},
        {"model": None},
    ],
)
def test_the_lock_shows_whether_the_session_was_changed(
    change: dict[str, Any], session: Session
) -> None:
    turn = create_turn(session, "running")
    session.refresh_from_db()
    Session.objects.update(**change)
    locked_turn = leases.lock_running_turn(turn.pk)
    assert locked_turn.is_session_as(session, context_version=0) == (not change)
    session.refresh_from_db()
    version = session.context_version
    assert locked_turn.is_session_as(session, context_version=version)


def test_the_lock_shows_whether_the_turn_was_cancelled(session: Session) -> None:
    turn = create_turn(session, "running")
    for is_cancel_requested in (False, True):
        Turn.objects.update(cancel_requested=is_cancel_requested)
        assert leases.lock_running_turn(turn.pk).is_cancel_requested == is_cancel_requested

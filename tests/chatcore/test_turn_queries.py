"""The statements with which turns begin, written by hand: each gives what the ORM's query gives."""

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatcore.models import Session, Turn
from chatcore.turns import queries

pytestmark = pytest.mark.django_db


def create_turn(session: Session, status: str, *, key: str = "") -> Turn:
    return Turn.objects.create(
        session=session,
        status=status,
        lease_until=timezone.now() + timedelta(seconds=30),
        idempotency_key=key or None,
    )


def explain(statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        return "\n".join(row[3] for row in cursor.fetchall())


@pytest.mark.parametrize("status", Turn.Status.values)
def test_the_open_turn_is_the_one_that_the_orm_finds(session: Session, status: str) -> None:
    create_turn(session, "completed")
    turn = create_turn(session, status)
    stored_turn = session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    open_turn = queries.find_open_turn(session.pk)
    assert (open_turn is None) == (stored_turn is None)
    if open_turn:
        assert open_turn == (turn.pk, status)


def test_the_open_turn_is_found_without_reading_the_others(session: Session) -> None:
    with CaptureQueriesContext(connection) as captured:
        queries.find_open_turn(session.pk)
        queries.find_turn_by_key(session.pk, "one")
    if connection.vendor == "sqlite":  # PostgreSQL plans by the sizes of tables; these are empty
        plans = [explain(query["sql"]) for query in captured]
        indexes = ("open_turns", "session_id=? AND idempotency_key=?")
        assert all(index in plan for index, plan in zip(indexes, plans, strict=True))


@pytest.mark.parametrize("status", Turn.Status.values)
def test_only_a_running_turn_is_locked(session: Session, status: str) -> None:
    turn = create_turn(session, status)
    assert bool(queries.lock_if_running(turn.pk)) == (status == "running")
    assert queries.lock_if_running(uuid.uuid4()) is None


def test_the_lock_shows_whether_the_turn_was_cancelled(session: Session) -> None:
    turn = create_turn(session, "running")
    for is_cancel_requested in (False, True):
        Turn.objects.update(cancel_requested=is_cancel_requested)
        assert queries.lock_if_running(turn.pk) == (is_cancel_requested,)


def test_a_turn_is_found_by_its_idempotency_key(session: Session) -> None:
    for key in ("one", "50 %s"):
        turn = create_turn(session, "completed", key=key)
        assert queries.find_turn_by_key(session.pk, key) == turn.pk
    assert queries.find_turn_by_key(session.pk, "three") is None
    assert queries.find_turn_by_key(uuid.uuid4(), "one") is None

"""Turns are locked before their session, and sessions in the order of their primary keys."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session, Turn
from chatcore.models.turn import TurnQuerySet
from chatcore.sessions import deletion as session_deletion
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.turns import deletion
from chatcore.turns.leases import renew_leases
from chatcore.turns.lifecycle import recover_dead_turns
from tests.support.database import wait_for_blocked_connection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def postgresql() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite locks the whole database, and so in no order.")


def start_thread(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def start_closed_turn(session: Session) -> Turn:
    question = Message.objects.create(session=session, seq=1, role="user", content="Hello")
    return Turn.objects.create(
        session=session,
        question=question,
        status=Turn.Status.COMPLETED,
        lease_until=timezone.now(),
    )


def test_deleting_a_message_locks_its_turn_before_the_session(session: Session) -> None:
    turn = start_closed_turn(session)
    assert turn.question
    question = turn.question
    with transaction.atomic():
        Turn.objects.select_for_update().get(pk=turn.pk)
        deleting = start_thread(lambda: deletion.delete_message(question))
        wait_for_blocked_connection()
        # A session that the deletion had locked already would raise here: that was the deadlock.
        Session.objects.select_for_update(nowait=True, of=("self",)).get(pk=session.pk)
    deleting.join(30)
    assert not session.messages.exists()


def test_a_turn_that_begins_while_its_session_is_deleted_is_locked_too(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_closed_turn(session)
    lock = TurnQuerySet.lock
    locked_counts: list[int] = []

    def lock_and_start_another(turns: TurnQuerySet) -> int:
        locked_counts.append(lock(turns))
        if len(locked_counts) == 1:
            lease_until = timezone.now() + timedelta(seconds=30)
            start_thread(
                lambda: Turn.objects.create(session=session, lease_until=lease_until)
            ).join(30)
        return locked_counts[-1]

    monkeypatch.setattr(TurnQuerySet, "lock", lock_and_start_another)
    session_deletion.delete_session(session.pk)
    assert locked_counts == [0, 1]  # closed turns are deleted later, by short transactions
    assert not Session.objects.filter(pk=session.pk).exists()


def test_the_archive_locks_sessions_by_primary_key(user: User, settings: LazySettings) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "MAX_SESSIONS": 1}
    first, second = sorted(
        (Session.objects.create(owner=user) for _ in range(2)), key=lambda session: session.pk
    )
    # The one used last is met first by a query in the order of the list.
    Session.objects.filter(pk=second.pk).update(updated_at=timezone.now())
    new_session = Session.objects.create(owner=user)
    with transaction.atomic():
        Session.objects.select_for_update().get(pk=first.pk)
        archiving = start_thread(lambda: archive_surplus_sessions(new_session))
        wait_for_blocked_connection()
        Session.objects.select_for_update(nowait=True).get(pk=second.pk)
    archiving.join(30)
    assert list(Session.objects.filter(archived=False)) == [new_session]


def test_renewing_leases_waits_for_no_turn_that_another_transaction_holds(user: User) -> None:
    """Two that renewed each other's turns were a deadlock, in a soak of five thousand answers."""
    begun = timezone.now() + timedelta(seconds=5)
    held, free = (
        Turn.objects.create(session=Session.objects.create(owner=user), lease_until=begun)
        for _ in range(2)
    )
    with transaction.atomic():
        Turn.objects.select_for_update().get(pk=held.pk)
        renewing = start_thread(lambda: renew_leases([held.pk, free.pk]))
        renewing.join(30)
        assert not renewing.is_alive()
    held.refresh_from_db()
    free.refresh_from_db()
    assert held.lease_until == begun
    assert free.lease_until > begun


def test_a_message_writes_no_lease_of_other_turns(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    living = Turn.objects.create(
        session=Session.objects.create(owner=user),
        lease_until=timezone.now() - timedelta(minutes=1),
    )
    monkeypatch.setattr(turn_runner, "list_turns", lambda: [living.pk])
    with CaptureQueriesContext(connection) as statements:
        assert recover_dead_turns() == 0
    assert not any("UPDATE" in statement["sql"] for statement in statements)
    living.refresh_from_db()
    assert living.status == Turn.Status.RUNNING

"""Deletion by time believes the database's clock, waits after a jump, and can be taken back."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.base import paused_deletion
from chatcore.models import Installation, Message, Session
from chatcore.sessions import upkeep
from chatcore.sessions.deletion import purge_due_sessions
from chatcore.sessions.retention import delete_unused_sessions
from chatcore.sessions.upkeep import find_clock_problem, run_if_clock_is_right

pytestmark = pytest.mark.django_db(transaction=True)
DAYS_40 = timedelta(days=40)


@pytest.fixture(autouse=True)
def forget_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin as a process does that has just started."""
    monkeypatch.setattr(upkeep, "_last_reading", None)
    monkeypatch.setattr(paused_deletion, "_problems", {})


@pytest.fixture
def retention(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def set_days(days: int, *, grace: int = 7) -> None:
        monkeypatch.setitem(settings.CHATCORE, "SESSION_RETENTION_DAYS", days)
        monkeypatch.setitem(settings.CHATCORE, "DELETION_GRACE_DAYS", grace)

    set_days(30)
    return set_days


def make_old(*sessions: Session) -> None:
    ids = [session.pk for session in sessions]
    Session.objects.filter(pk__in=ids).update(updated_at=timezone.now() - DAYS_40)


def read_warnings() -> list[str]:
    response = Client().get("/readyz")
    assert response.status_code == 200
    warnings: list[str] = json.loads(response.content)["warnings"]
    return warnings


def move_clock(delta: timedelta) -> Any:
    return time_machine.travel(datetime.now().astimezone() + delta, tick=True)


def delete_in_a_round() -> int | None:
    return run_if_clock_is_right(delete_unused_sessions)


def test_a_machine_with_another_clock_than_the_databases_deletes_nothing_and_says_so(
    session: Session, user: User, retention: Callable[..., None]
) -> None:
    Session.objects.create(owner=user, temporary=True)
    assert delete_in_a_round() == 0
    with move_clock(DAYS_40):
        assert delete_in_a_round() is None
        [warning] = [text for text in read_warnings() if "clock" in text.lower()]
    if connection.vendor == "postgresql":
        assert warning.startswith("The clock of this machine differs from the database's by 40 day")
    else:
        assert warning.startswith("The clock has jumped")
    assert Session.objects.count() == 2


def test_a_round_goes_on_once_the_clock_is_right_again(
    session: Session, retention: Callable[..., None]
) -> None:
    make_old(session)
    with move_clock(DAYS_40):
        Installation.load()
        find_clock_problem()
    upkeep._last_reading = None
    assert delete_in_a_round() == 1
    assert read_warnings() == ["no worker lives"]


@pytest.mark.skipif(
    "connection.vendor != 'sqlite'", reason="PostgreSQL's clock cannot be moved by a test."
)
def test_after_days_without_a_round_deletion_waits_for_a_day(
    session: Session, retention: Callable[..., None]
) -> None:
    make_old(session)
    Installation.load()
    Installation.objects.update(clock_read_at=timezone.now() - timedelta(days=3))
    assert delete_in_a_round() is None
    with move_clock(timedelta(hours=23)):
        upkeep._last_reading = None  # another process
        assert delete_in_a_round() is None
    with move_clock(timedelta(hours=25)):
        upkeep._last_reading = None
        assert delete_in_a_round() == 1


@pytest.mark.skipif(
    "connection.vendor != 'sqlite'", reason="PostgreSQL's clock cannot be moved by a test."
)
def test_a_clock_that_was_set_ahead_between_two_starts_is_found_by_the_machines_own_time(
    user: User, retention: Callable[..., None]
) -> None:
    Session.objects.create(owner=user, temporary=True)
    assert delete_in_a_round() == 0
    upkeep._last_reading = None  # another process of the same machine
    with move_clock(timedelta(hours=43)):
        assert delete_in_a_round() is None
        assert any("The clock has jumped" in text for text in read_warnings())
    assert Session.objects.count() == 1


def test_what_retention_takes_is_hidden_for_days_and_staff_bring_it_back(
    session: Session, api: APIClient, retention: Callable[..., None], admin_client: Client
) -> None:
    Message.objects.create(session=session, seq=1, role="user", content="A heron on a lake.")
    make_old(session)
    assert delete_in_a_round() == 1
    assert api.get(f"/api/v1/sessions/{session.pk}").status_code == 404
    assert purge_due_sessions() == 0
    out = StringIO()
    call_command("retention", stdout=out)
    assert "0 of 0 chats are due, and 1 are hidden" in out.getvalue()

    action = {"action": "bring_back", "_selected_action": [str(session.pk)]}
    answer = admin_client.post("/admin/chatcore/session/", action, follow=True)
    assert b"1 sessions are back." in answer.content
    assert api.get(f"/api/v1/sessions/{session.pk}").status_code == 200
    assert delete_in_a_round() == 0  # it counts as used
    assert session.messages.get().content == "A heron on a lake."


def test_the_rows_go_when_the_days_of_grace_are_over(
    session: Session, retention: Callable[..., None]
) -> None:
    make_old(session)
    assert delete_in_a_round() == 1
    Session.all_objects.update(discard_at=timezone.now() - timedelta(seconds=1))
    assert purge_due_sessions() == 1
    assert not Session.all_objects.exists()


def test_a_temporary_chat_and_one_that_a_person_deletes_have_no_grace(
    session: Session, user: User, api: APIClient, retention: Callable[..., None]
) -> None:
    temporary = Session.objects.create(owner=user, temporary=True)
    make_old(temporary)
    assert delete_in_a_round() == 1
    assert api.delete(f"/api/v1/sessions/{session.pk}").status_code == 204
    assert not Session.all_objects.exists()


def test_a_round_that_would_take_a_large_share_waits_for_staff(
    session: Session, user: User, retention: Callable[..., None]
) -> None:
    sessions = Session.objects.bulk_create(
        [Session(owner=user, title=str(number)) for number in range(101)]
    )
    make_old(*sessions)
    assert delete_in_a_round() == 0
    [warning] = [text for text in read_warnings() if "Retention" in text]
    assert warning.startswith("Retention would delete 101 of 102 chats, and waits.")
    assert Session.objects.count() == 102

    call_command("retention", "--confirm", stdout=StringIO())
    assert delete_in_a_round() == 101
    assert Session.objects.count() == 1
    assert not [text for text in read_warnings() if "Retention" in text]
    call_command("retention", "--bring-back", "all", stdout=StringIO())
    assert Session.objects.count() == 102

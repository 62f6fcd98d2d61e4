"""Turns whose process has died: who counts as dead, who closes them, and what a cancel says."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.base import process_locks
from chatcore.events import log as event_log
from chatcore.events.types import DeltaPayload, EventType
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.sessions import verification
from chatcore.turns import control, generation, leases, lifecycle
from chatcore.turns.messages import append_message
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

A_SECOND_AGO = timedelta(seconds=-1)


def leave_turn(session: Session, *, lease: timedelta = A_SECOND_AGO) -> Turn:
    """Leave a turn as a process does that dies in the middle of an answer."""
    turn = Turn.objects.create(session=session, lease_until=timezone.now() + lease)
    message = append_message(session.pk, turn, role="assistant", status="streaming")
    delta = DeltaPayload(message=message.pk, offset=0, text="Half a sen")
    event_log.append_events(session.pk, (EventType.MESSAGE_DELTA, delta))
    return turn


def get_words(turn: Turn) -> tuple[str, str]:
    message = Message.objects.get(turn=turn)
    return message.content, message.status


def get_status(turn: Turn) -> str:
    return Turn.objects.values_list("status", flat=True).get(pk=turn.pk)


def get_last_event(session: Session) -> str:
    return SessionEvent.objects.filter(session=session).latest("seq").name


BE_A_PROCESS = """
import sys
from django.conf import settings
settings.configure(DATA_DIR=sys.argv[1])
from chatcore.base.process_locks import get_own_process
print(get_own_process(), flush=True)
sys.stdin.read()
"""


class TestAProcessOfThisMachineThatIsKilled:
    @pytest.fixture
    def process(self) -> Iterator["subprocess.Popen[str]"]:
        command = [sys.executable, "-c", BE_A_PROCESS, str(settings.DATA_DIR)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            yield process
            process.kill()

    @pytest.fixture
    def turn(self, session: Session, process: "subprocess.Popen[str]") -> Turn:
        assert process.stdout
        turn = leave_turn(session, lease=leases.LEASE)
        Turn.objects.filter(pk=turn.pk).update(process=process.stdout.readline().strip())
        return turn

    def test_its_sessions_are_open_at_once_and_have_its_words(
        self, turn: Turn, process: "subprocess.Popen[str]", api: APIClient, session: Session
    ) -> None:
        path = f"/api/v1/sessions/{session.pk}/messages"
        assert api.post(path, {"content": "Hi"}).status_code == 409  # it lives
        assert lifecycle.recover_dead_turns() == 0
        process.kill()
        process.wait(60)
        assert api.post(path, {"content": "Hi"}).status_code == 201
        assert get_words(turn) == ("Half a sen", "interrupted")
        turn.refresh_from_db()
        assert (turn.status, turn.process) == (Turn.Status.INTERRUPTED, None)

    def test_the_first_round_of_another_process_closes_its_turns(
        self, turn: Turn, process: "subprocess.Popen[str]"
    ) -> None:
        process.kill()
        process.wait(60)
        assert lifecycle.RecoveryChore().recover() == 1
        assert get_status(turn) == Turn.Status.INTERRUPTED
        assert process_locks.list_dead_processes() == []

    def test_an_answer_names_its_process_while_it_is_written(
        self, session: Session, scripted: ScriptedModel
    ) -> None:
        scripted.script(Reply(text="slow", hang=True))
        turn = control.start_turn(session, content="Hi")
        assert Turn.objects.get().process == process_locks.get_own_process() is not None
        assert not process_locks.list_dead_processes()
        assert control.cancel_turn(session.pk)
        control.wait_for_turn(turn.pk, 60)
        assert Turn.objects.get().process is None


class TestALeaseThatIsTooFarAhead:
    """A clock that was days ahead when the process died is right again."""

    @pytest.fixture
    def turn(self, session: Session) -> Turn:
        return leave_turn(session, lease=timedelta(days=3))

    def test_it_is_over(self, turn: Turn) -> None:
        assert lifecycle.recover_dead_turns() == 1
        assert get_words(turn) == ("Half a sen", "interrupted")

    def test_the_next_message_is_answered(
        self, session: Session, scripted: ScriptedModel, turn: Turn
    ) -> None:
        next_turn = control.start_turn(session, content="Hello?")
        assert control.wait_for_turn(next_turn.pk, 30).status == Turn.Status.COMPLETED
        assert get_status(turn) == Turn.Status.INTERRUPTED

    def test_one_that_is_a_little_ahead_lives(self, session: Session) -> None:
        leave_turn(session, lease=leases.LEASE * 1.5)
        assert lifecycle.recover_dead_turns() == 0


def test_leases_are_measured_by_the_clock_of_the_database(session: Session) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has the clock of its machine.")
    turn = leave_turn(session, lease=leases.LEASE)
    with time_machine.travel(timezone.now() + timedelta(days=1)):
        leases.renew_leases([turn.pk])
        assert lifecycle.recover_dead_turns() == 0, "only this machine's clock is wrong"
    turn.refresh_from_db()
    assert abs(turn.lease_until - timezone.now() - leases.LEASE) < timedelta(seconds=15)


def test_a_round_is_left_out_when_the_clock_was_set(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = leave_turn(session, lease=leases.LEASE)
    chore = lifecycle.RecoveryChore()
    steps = [timedelta(0)]

    def read_clock() -> datetime:
        return timezone.now() + steps[-1]

    monkeypatch.setattr(lifecycle, "read_clock", read_clock)
    monkeypatch.setattr(leases, "read_clock", read_clock)
    assert chore.recover() == 0
    for step in (timedelta(minutes=10), timedelta(days=-2)):
        steps.append(step)
        assert chore.recover() == 0, "its process had no time to renew the lease"
        leases.renew_leases([turn.pk])
        assert chore.recover() == 0
    steps.append(timedelta(days=3))
    assert [chore.recover(), chore.recover()] == [0, 1], "nobody has renewed it"


class TestCancel:
    def test_it_closes_a_turn_that_no_process_owns(self, session: Session, api: APIClient) -> None:
        turn = leave_turn(session)
        assert api.post(f"/api/v1/sessions/{session.pk}/cancel").json() == {"cancelled": True}
        assert get_status(turn) == Turn.Status.CANCELLED
        assert get_words(turn) == ("Half a sen", "interrupted")
        assert get_last_event(session) == "turn.cancelled"
        assert api.post(f"/api/v1/sessions/{session.pk}/cancel").json() == {"cancelled": False}

    def test_it_comes_true_when_the_lease_ends(self, session: Session) -> None:
        turn = leave_turn(session, lease=leases.LEASE)
        assert control.cancel_turn(session.pk)
        assert get_status(turn) == Turn.Status.RUNNING, "nobody knows yet that its process is dead"
        Turn.objects.update(lease_until=timezone.now() + A_SECOND_AGO)
        lifecycle.recover_dead_turns()
        assert get_status(turn) == Turn.Status.CANCELLED

    def test_it_comes_true_for_an_answer_that_is_just_complete(
        self, session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store_answer = generation._store_answer

        def store_late(*args: Any) -> Message:
            Turn.objects.update(cancel_requested=True)  # as another process's cancel does
            return store_answer(*args)

        monkeypatch.setattr(generation, "_store_answer", store_late)
        scripted.script(Reply(chunks=["All ", "of it."]))
        turn = control.wait_for_turn(control.start_turn(session, content="Hello").pk, 30)
        assert (turn.status, get_last_event(session)) == (Turn.Status.CANCELLED, "turn.cancelled")
        answer = session.messages.get(role="assistant")
        assert (answer.content, answer.status) == ("All of it.", "interrupted")


class TestABrokenSession:
    """What cannot be mended in one session stops the recovery of no other."""

    @pytest.fixture
    def turns(self, user: User, monkeypatch: pytest.MonkeyPatch) -> list[Turn]:
        """Three dead turns; whatever is written to the log of the first session fails."""
        turns = [leave_turn(Session.objects.create(owner=user)) for _ in range(3)]
        append_events = event_log.append_events

        def append_or_fail(session_id: Any, *events: Any) -> int:
            if session_id == turns[0].session_id:
                raise ValueError("a broken row")
            return append_events(session_id, *events)

        monkeypatch.setattr(event_log, "append_events", append_or_fail)
        return turns

    def test_the_others_are_recovered_and_it_is_logged_once(
        self, turns: list[Turn], caplog: pytest.LogCaptureFixture
    ) -> None:
        chore = lifecycle.RecoveryChore()
        with caplog.at_level(logging.ERROR):
            assert [chore.recover(), chore.recover()] == [2, 0]
        assert [get_status(turn) for turn in turns] == ["running", "interrupted", "interrupted"]
        assert len([record for record in caplog.records if str(turns[0].pk) in record.message]) == 1

    def test_messages_left_streaming_are_closed_too(self, turns: list[Turn]) -> None:
        Turn.objects.update(status=Turn.Status.FAILED)
        assert lifecycle.mend_streaming_messages() == 2

    def test_a_row_that_cannot_even_be_read(
        self, session: Session, turns: list[Turn], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute("PRAGMA ignore_check_constraints = ON")
            else:
                pytest.skip("PostgreSQL stores valid JSON only.")
            cursor.execute(
                "UPDATE chatcore_turn SET notices = '{broken' WHERE id = %s", [turns[1].pk.hex]
            )
        assert lifecycle.recover_dead_turns() == 2, "what it does not need, it does not read"


def test_counters_that_were_set_back_are_mended_with_the_turn(session: Session) -> None:
    turn = leave_turn(session)
    Session.objects.update(last_event_seq=0, last_seq=0)
    assert lifecycle.recover_dead_turns() == 1
    assert get_words(turn) == ("Half a sen", "interrupted")
    session.refresh_from_db()
    assert list(verification.find_violations(session)) == []

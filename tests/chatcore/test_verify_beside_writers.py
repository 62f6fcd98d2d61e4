"""`chatcore verify` beside writers: a healthy session that is in use breaks no rule."""

import threading
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from chatcore.models import Message, Session
from chatcore.sessions import verification
from chatcore.turns import control
from chatcore.turns.messages import append_message, build_created_event
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

ANSWERS = 12


def run_elsewhere(work: Callable[[], object]) -> None:
    """Run in a thread with a connection of its own, and wait until it is committed."""

    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "the check holds up a writer"


@pytest.mark.parametrize("moment", ["count_current_messages", "load_newest_revision"])
def test_what_is_committed_in_the_middle_of_a_check_is_not_seen(
    session: Session, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    append_message(session.pk, None, build_created_event, role="user", content="One")
    look = getattr(verification, moment)

    def write_and_look(*arguments: Any) -> Any:
        run_elsewhere(
            lambda: append_message(
                session.pk, None, build_created_event, role="user", content="Another"
            )
        )
        return look(*arguments)

    monkeypatch.setattr(verification, moment, write_and_look)
    assert verification.check_session(session.pk) == []
    assert Message.objects.count() > 1


def test_what_is_really_wrong_is_said(session: Session) -> None:
    append_message(session.pk, None, build_created_event, role="user", content="One")
    Session.objects.update(last_event_seq=0, message_count=7)
    assert len(verification.check_session(session.pk)) == 2


def test_a_session_that_is_deleted_meanwhile_breaks_no_rule(session: Session) -> None:
    session_id = session.pk
    session.delete()
    assert verification.check_session(session_id) == []


def test_it_finds_nothing_while_answers_are_streamed(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(chunks=["word "] * 10, chunk_delay=0.01)
    others = [Session.objects.create(owner=session.owner, model=session.model) for _ in range(3)]
    is_over = threading.Event()

    def talk(each: Session) -> None:
        try:
            for number in range(ANSWERS // 4):
                turn = control.start_turn(each, content=f"Question {number}")
                control.wait_for_turn(turn.pk, 60)
        finally:
            connection.close()

    def talk_all() -> None:
        talkers = [threading.Thread(target=talk, args=[each]) for each in (session, *others)]
        for talker in talkers:
            talker.start()
        for talker in talkers:
            talker.join()
        is_over.set()

    talking = threading.Thread(target=talk_all)
    talking.start()
    checks = 0
    while not is_over.is_set():
        out = StringIO()
        call_command("verify", stdout=out)  # exits with 1 if anything is found
        checks += 1
    talking.join()
    assert checks > 1
    assert Message.objects.filter(status="complete").count() == 2 * ANSWERS

"""Interrupted turns: whoever stops one, its words are stored once and it ends once."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.utils import timezone

from chatcore.events import log as event_log
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.providers.base import StreamEnd, TextDelta
from chatcore.threads import run_in_thread
from chatcore.turns import generation, leases, service
from chatcore.turns.leases import TurnLost
from chatcore.turns.recorder import AnswerRecorder
from chatcore.turns.runner import turn_runner
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def turn(session: Session) -> Turn:
    """A running turn that nobody generates."""
    return Turn.objects.create(session=session, lease_until=timezone.now() + timedelta(seconds=30))


def names_of(session: Session) -> list[str]:
    return list(
        SessionEvent.objects.filter(session=session).order_by("seq").values_list("name", flat=True)
    )


def until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("after", [0, 0.005, 0.02])
def test_a_turn_can_be_cancelled_before_it_begins(
    session: Session, scripted: ScriptedModel, after: float
) -> None:
    scripted.script(Reply(text="slow", hang=True))
    turn = service.start_turn(session, content="go on")
    time.sleep(after)
    assert service.cancel_turn(session.pk)
    assert service.wait_for_turn(turn.pk, 20).status == Turn.Status.CANCELLED
    assert names_of(session)[-1] == "turn.cancelled"


@pytest.mark.parametrize("between", [0, 0.002, 0.004, 0.008])
def test_cancelling_again_and_again_loses_nothing_that_was_said(
    session: Session, scripted: ScriptedModel, between: float
) -> None:
    scripted.script(Reply(chunks=["word "] * 200, chunk_delay=0.02))
    turn = service.start_turn(session, content="go on")
    until(lambda: "message.delta" in names_of(session))
    for _ in range(4):
        service.cancel_turn(session.pk)
        turn_runner.cancel(turn.pk)
        time.sleep(between)
    assert service.wait_for_turn(turn.pk, 20).status == Turn.Status.CANCELLED
    answer = session.messages.get(role="assistant")
    assert answer.status == Message.Status.INTERRUPTED
    assert answer.content == event_log.join_deltas(answer.pk)[0] != ""
    assert names_of(session)[-2:] == ["message.completed", "turn.cancelled"]


def test_an_answer_that_was_stored_while_it_was_cancelled_stays_as_it_is(
    session: Session, turn: Turn
) -> None:
    answer = _spoken(turn, "All of it.")
    with answer.open_transaction():
        stored = answer.complete_message(StreamEnd(reason="stop"))
    with answer.open_transaction():
        assert answer.interrupt_message() is None
    stored.refresh_from_db()
    assert (stored.status, names_of(session).count("message.completed")) == ("complete", 1)


def test_an_answer_that_was_interrupted_is_not_completed_by_a_thread_that_came_late(
    session: Session, turn: Turn
) -> None:
    answer = _spoken(turn, "Half")
    with answer.open_transaction():
        answer.interrupt_message()
    with pytest.raises(TurnLost), answer.open_transaction():
        answer.complete_message(StreamEnd(reason="stop"))
    assert session.messages.get().status == "interrupted"
    assert names_of(session) == ["message.created", "message.delta", "message.completed"]


def test_words_that_could_not_be_written_leave_no_gap_in_the_numbers(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, failures = event_log.append_events, [OperationalError("away")]

    def append(session_id: Any, *events: Any) -> int:
        last = stored(session_id, *events)
        if failures and events[0][0] == "message.delta":
            raise failures.pop()
        return last

    monkeypatch.setattr(event_log, "append_events", append)
    scripted.script(Reply(chunks=["one ", "two ", "three "], chunk_delay=0.2))
    assert (
        service.wait_for_turn(service.start_turn(session, content="count").pk, 30).status
        == Turn.Status.FAILED
    )
    assert (
        service.wait_for_turn(service.start_turn(session, content="again").pk, 30).status
        == Turn.Status.COMPLETED
    )
    session.refresh_from_db()
    assert session.last_seq == session.message_count == session.messages.count()


def test_a_turn_that_was_cancelled_before_it_waits_does_not_wait(
    session: Session, turn: Turn
) -> None:
    Turn.objects.update(cancel_requested=True)
    generation._wait_for_client(turn, [])
    turn.refresh_from_db()
    assert (turn.status, names_of(session)) == (Turn.Status.CANCELLED, ["turn.cancelled"])


def test_a_lease_outlives_a_database_that_was_away(
    turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, failures = leases.renew_lease, [OperationalError("away")]

    def hold(turn_id: Any) -> None:
        if failures:
            raise failures.pop()
        held(turn_id)

    monkeypatch.setattr(generation, "renew_lease", hold)
    monkeypatch.setattr(generation, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(generation, "LEASE", timedelta(seconds=0.2))
    before = turn.lease_until
    asyncio.run(_watched(turn, 0.6))
    turn.refresh_from_db()
    assert not failures
    assert turn.lease_until > before


def test_a_process_that_lost_its_turn_stops_talking_to_the_provider(
    turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generation, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(generation, "LEASE", timedelta(seconds=0.2))
    Turn.objects.update(status=Turn.Status.INTERRUPTED)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_watched(turn, 5))


def test_the_next_turn_closes_one_whose_process_died(
    session: Session, scripted: ScriptedModel, turn: Turn
) -> None:
    Turn.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert (
        service.wait_for_turn(service.start_turn(session, content="hi").pk, 30).status
        == Turn.Status.COMPLETED
    )
    turn.refresh_from_db()
    assert turn.status == Turn.Status.INTERRUPTED
    assert names_of(session)[:2] == ["turn.failed", "turn.started"]


def test_a_thread_keeps_no_statements_for_debugging(session: Session) -> None:
    def kept() -> tuple[Any, int]:
        connections["default"].force_debug_cursor = True
        Session.objects.count()
        return connections["default"].queries_log, len(connections["default"].queries_log)

    log, during = asyncio.run(run_in_thread(kept))
    assert (during, len(log)) == (1, 0)


def test_slow_work_of_many_turns_holds_up_no_other(
    session: Session, scripted: ScriptedModel
) -> None:
    async def slow(_: Any) -> None:
        await asyncio.to_thread(go_on.wait, 20)

    go_on = threading.Event()
    others = [Turn(session=session).pk for _ in range(20)]
    try:
        for other in others:
            turn_runner.launch(other, slow)
        assert (
            service.wait_for_turn(service.start_turn(session, content="hi").pk, 15).status
            == Turn.Status.COMPLETED
        )
    finally:
        go_on.set()
        turn_runner.drain()


def test_whoever_waits_for_an_answer_holds_no_connection(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="slow", delay=3))
    turn = service.start_turn(session, content="hi")
    mine: list[Any] = []

    def wait() -> None:
        Turn.objects.get(pk=turn.pk)
        mine.append(connections["default"])
        service.wait_for_turn(turn.pk, 30)
        connections.close_all()

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: mine and mine[0].connection is None)
    assert Turn.objects.get(pk=turn.pk).status == Turn.Status.RUNNING
    waiting.join()


def _spoken(turn: Turn, text: str) -> AnswerRecorder:
    recorder = AnswerRecorder(turn, model="a/model", context_version=0)
    recorder.record_delta(TextDelta(text))
    return recorder


async def _watched(turn: Turn, seconds: float) -> None:
    watch = asyncio.create_task(generation._keep_lease(turn.pk, asyncio.current_task()))
    await asyncio.sleep(seconds)
    watch.cancel()

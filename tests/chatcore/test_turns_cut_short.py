"""Interrupted turns: whoever stops one, its words are stored once and it ends once."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.utils import timezone

from chatcore.accounts.spending import reserve_call
from chatcore.base.runner import turn_runner
from chatcore.base.threads import run_in_thread
from chatcore.events import log as event_log
from chatcore.events.types import DeltaPayload, EventType
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.providers.base import Request, StreamEnd, TextDelta
from chatcore.turns import control, delta_writer, generation, leases, lifecycle
from chatcore.turns.leases import TurnLost
from chatcore.turns.messages import append_message
from chatcore.turns.recorder import AnswerRecorder
from chatcore.turns.waiting import OpenCalls
from models_registry.prices import TokenUse
from tests.support.outages import lock_sqlite
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def turn(session: Session) -> Turn:
    """A running turn that nobody generates."""
    return Turn.objects.create(session=session, lease_until=timezone.now() + timedelta(seconds=30))


def names_of(session: Session) -> list[str]:
    return list(
        SessionEvent.objects.filter(session=session).order_by("seq").values_list("name", flat=True)
    )


def count_to_three(session: Session, scripted: ScriptedModel) -> str:
    """Return the answer as it is stored, which is as it is in the log."""
    scripted.script(Reply(chunks=["one ", "two ", "three "], chunk_delay=0.3))
    turn = control.wait_for_turn(control.start_turn(session, content="count").pk, 30)
    answer = session.messages.get(role="assistant")
    assert (turn.status, answer.status) == (Turn.Status.COMPLETED, Message.Status.COMPLETE)
    assert answer.content == event_log.join_deltas(answer.pk)[0]
    return answer.content


@pytest.mark.parametrize("has_asked", [False, True])
def test_a_turn_can_be_cancelled_before_its_first_word(
    session: Session, scripted: ScriptedModel, has_asked: bool
) -> None:
    scripted.script(Reply(text="slow", hang=True))
    turn = control.start_turn(session, content="go on")
    if has_asked:
        wait_until(lambda: scripted.requests, what="the call of the model")
    assert control.cancel_turn(session.pk)
    assert control.wait_for_turn(turn.pk, 20).status == Turn.Status.CANCELLED
    assert names_of(session)[-1] == "turn.cancelled"


@pytest.mark.parametrize("between", [0, 0.002, 0.004, 0.008])
def test_cancelling_again_and_again_loses_nothing_that_was_said(
    session: Session, scripted: ScriptedModel, between: float
) -> None:
    scripted.script(Reply(chunks=["word "] * 200, chunk_delay=0.02))
    turn = control.start_turn(session, content="go on")
    wait_until(lambda: "message.delta" in names_of(session))
    for _ in range(4):
        control.cancel_turn(session.pk)
        turn_runner.cancel(turn.pk)
        turn_runner.wait(turn.pk, between)
    assert control.wait_for_turn(turn.pk, 20).status == Turn.Status.CANCELLED
    answer = session.messages.get(role="assistant")
    assert answer.status == Message.Status.INTERRUPTED
    assert answer.content == event_log.join_deltas(answer.pk)[0] != ""
    assert names_of(session)[-2:] == ["message.completed", "turn.cancelled"]


def test_words_that_are_stored_already_are_no_failure(session: Session, turn: Turn) -> None:
    """The writer may take words between their arrival and the call that tells it of them."""
    answer = _spoken(turn, "One")
    wait_until(lambda: "message.delta" in names_of(session))
    delta_writer.delta_writer._write([answer])
    answer.record_delta(TextDelta(", two"))
    with answer.open_transaction():
        stored, _ = answer.complete_message(StreamEnd(reason="stop"))
    assert stored.content == "One, two"


def test_an_answer_that_was_stored_while_it_was_cancelled_stays_as_it_is(
    session: Session, turn: Turn
) -> None:
    answer = _spoken(turn, "All of it.")
    with answer.open_transaction():
        stored, events = answer.complete_message(StreamEnd(reason="stop"))
    with answer.open_transaction():
        assert answer.interrupt_message() == []
    stored.refresh_from_db()
    assert (stored.status, events[-1][0]) == ("complete", "message.completed")


def test_an_answer_that_was_interrupted_is_not_completed_by_a_thread_that_came_late(
    session: Session, turn: Turn
) -> None:
    answer = _spoken(turn, "Half")
    with answer.open_transaction():
        event_log.append_events(session.pk, *answer.interrupt_message())
    with pytest.raises(TurnLost), answer.open_transaction():
        answer.complete_message(StreamEnd(reason="stop"))
    assert session.messages.get().status == "interrupted"
    assert names_of(session) == ["message.created", "message.delta", "message.completed"]


def test_words_that_were_rolled_back_are_written_again(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, failures = event_log.store_numbered_events, [OperationalError("away")] * 2

    def store_and_fail(new_events: Any, last_seqs: Any) -> None:
        store(new_events, last_seqs)
        if failures and any(events[-1][0] == "message.delta" for events in new_events.values()):
            raise failures.pop()

    monkeypatch.setattr(event_log, "store_numbered_events", store_and_fail)
    assert count_to_three(session, scripted) == "one two three "
    assert not failures
    session.refresh_from_db()
    assert session.last_seq == session.message_count == session.messages.count()


def test_words_whose_commit_was_not_confirmed_are_not_written_twice(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark_stored, failures = AnswerRecorder.mark_stored, [OperationalError("cut off")] * 2

    def mark_or_fail(recorder: AnswerRecorder, new_deltas: Any) -> None:
        if failures:
            recorder.message = None
            raise failures.pop()
        mark_stored(recorder, new_deltas)

    monkeypatch.setattr(AnswerRecorder, "mark_stored", mark_or_fail)
    assert count_to_three(session, scripted) == "one two three "
    assert not failures
    assert names_of(session).count("message.created") == 2, "the question's and the answer's"


def test_words_wait_for_another_writer_for_as_long_as_it_takes(
    session: Session, scripted: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("Only SQLite locks the whole database.")
    scripted.script(Reply(chunks=["word "] * 15, chunk_delay=0.1))
    turn = control.start_turn(session, content="count")
    wait_until(lambda: "message.delta" in names_of(session))
    with lock_sqlite():
        time.sleep(20 * delta_writer.LOCK_SECONDS)
    assert control.wait_for_turn(turn.pk, 30).status == Turn.Status.COMPLETED
    assert session.messages.get(role="assistant").content == "word " * 15
    assert "not written" not in caplog.text


def test_a_log_that_fails_for_a_second_in_the_middle_of_eight_answers_loses_no_word(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = [f"{number} " for number in range(30)]
    scripted.default = Reply(chunks=chunks, chunk_delay=0.1)
    others = [Session.objects.create(owner=session.owner, model=session.model) for _ in range(7)]
    sessions = [session, *others]
    turns = [control.start_turn(each, content="count") for each in sessions]
    wait_until(lambda: SessionEvent.objects.filter(name="message.delta").count() >= len(sessions))
    store, fails_until = event_log.store_numbered_events, time.monotonic() + 1
    failures: list[float] = []

    def store_or_fail(new_events: Any, last_seqs: Any) -> None:
        if time.monotonic() < fails_until:
            failures.append(time.monotonic())
            raise OperationalError("disk I/O error")
        store(new_events, last_seqs)

    monkeypatch.setattr(event_log, "store_numbered_events", store_or_fail)
    ends = [control.wait_for_turn(turn.pk, 30).status for turn in turns]
    assert (set(ends), bool(failures)) == ({Turn.Status.COMPLETED}, True)
    for each in sessions:
        answer = each.messages.get(role="assistant")
        assert answer.content == event_log.join_deltas(answer.pk)[0] == "".join(chunks)
        assert names_of(each)[-3:] == ["message.completed", "turn.completed", "context.usage"]


def test_an_end_that_the_database_refuses_at_first_is_stored_with_its_words(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_turn, failures = lifecycle.end_turn, [OperationalError("away") for _ in range(3)]

    def end_or_fail(*args: Any, **kwargs: Any) -> None:
        if failures:
            raise failures.pop()
        end_turn(*args, **kwargs)

    monkeypatch.setattr(lifecycle, "end_turn", end_or_fail)
    scripted.script(Reply(chunks=["half ", "of it"], chunk_delay=0.3, cut_after=1))
    turn = control.wait_for_turn(control.start_turn(session, content="go on").pk, 30)
    answer = session.messages.get(role="assistant")
    assert (turn.status, answer.status) == (Turn.Status.FAILED, Message.Status.INTERRUPTED)
    assert answer.content == event_log.join_deltas(answer.pk)[0] == "half "


@pytest.mark.parametrize(
    ("bound", "value", "words"),
    [("ANSWER_CHARS", 1_000, "1000 characters"), ("ANSWER_SECONDS", 1, "1 seconds")],
)
def test_an_answer_without_an_end_is_stopped_and_kept(
    session: Session,
    scripted: ScriptedModel,
    settings: Any,
    bound: str,
    value: int,
    words: str,
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, bound: value}
    scripted.script(Reply(chunks=["word " * 20] * 200, chunk_delay=0.05))
    turn = control.wait_for_turn(control.start_turn(session, content="go on").pk, 30)
    answer = session.messages.get(role="assistant")
    assert (turn.status, answer.status) == (Turn.Status.FAILED, Message.Status.INTERRUPTED)
    assert turn.error is not None
    assert words in turn.error["detail"]
    assert len(answer.content) >= 100


def test_an_error_that_no_other_attempt_mends_fails_the_turn(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_nonsense(*_: Any) -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT nonsense FROM nowhere")

    monkeypatch.setattr(AnswerRecorder, "complete_message", write_nonsense)
    turn = control.wait_for_turn(control.start_turn(session, content="go on").pk, 30)
    answer = session.messages.get(role="assistant")
    assert (turn.status, answer.status) == (Turn.Status.FAILED, Message.Status.INTERRUPTED)
    assert answer.content != ""


def test_a_message_left_streaming_in_a_turn_that_is_over_gets_its_words(
    session: Session, turn: Turn
) -> None:
    message = append_message(session.pk, turn, role="assistant", status="streaming")
    delta = DeltaPayload(message=message.pk, offset=0, text="said")
    event_log.append_events(session.pk, (EventType.MESSAGE_DELTA, delta))
    assert lifecycle.mend_streaming_messages() == 0, "the turn still runs"
    Turn.objects.update(status=Turn.Status.FAILED)
    assert lifecycle.mend_streaming_messages() == 1
    message.refresh_from_db()
    assert (message.content, message.status) == ("said", "interrupted")
    assert names_of(session)[-1] == "message.completed"
    assert lifecycle.mend_streaming_messages() == 0


def test_a_turn_that_was_cancelled_before_it_waits_does_not_wait(
    session: Session, turn: Turn
) -> None:
    Turn.objects.update(cancel_requested=True)
    generation._wait(turn, OpenCalls())
    turn.refresh_from_db()
    assert (turn.status, names_of(session)) == (Turn.Status.CANCELLED, ["turn.cancelled"])


def test_a_lease_outlives_a_database_that_was_away(
    turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew, failures = leases.renew_leases, [OperationalError("away")]
    has_renewed = threading.Event()

    def renew_or_fail(turn_ids: Any) -> None:
        if failures:
            raise failures.pop()
        renew(turn_ids)
        has_renewed.set()

    monkeypatch.setattr(leases, "renew_leases", renew_or_fail)
    monkeypatch.setattr(leases, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(leases, "RENEWALS", 150)  # one each 0.2 s
    before = turn.lease_until
    asyncio.run(_run_watched(turn, has_renewed.is_set))
    turn.refresh_from_db()
    assert not failures
    assert turn.lease_until > before


def test_a_process_that_lost_its_turn_stops_talking_to_the_provider(
    turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "WATCH_SECONDS", 0.05)
    Turn.objects.update(status=Turn.Status.INTERRUPTED)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_run_watched(turn, lambda: False))


def test_turns_that_outlived_an_absence_of_the_database_are_not_taken_for_dead(
    turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    Turn.objects.update(lease_until=timezone.now() - timedelta(seconds=60))
    recover, failures = lifecycle.recover_dead_turns, [OperationalError("away")]

    def recover_or_fail() -> int:
        if failures:
            raise failures.pop()
        return recover()

    monkeypatch.setattr(lifecycle, "recover_dead_turns", recover_or_fail)
    chore = lifecycle.RecoveryChore()

    async def run_rounds(count: int) -> None:
        for _ in range(count):
            with contextlib.suppress(OperationalError):
                await chore.run()

    asyncio.run(run_rounds(2))
    turn.refresh_from_db()
    assert turn.status == Turn.Status.RUNNING, "its process had no time to renew the lease"
    asyncio.run(run_rounds(1))
    turn.refresh_from_db()
    assert turn.status == Turn.Status.INTERRUPTED


def test_the_next_turn_closes_one_whose_process_died(
    session: Session, scripted: ScriptedModel, turn: Turn
) -> None:
    Turn.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert (
        control.wait_for_turn(control.start_turn(session, content="hi").pk, 30).status
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
            control.wait_for_turn(control.start_turn(session, content="hi").pk, 15).status
            == Turn.Status.COMPLETED
        )
    finally:
        go_on.set()
        turn_runner.drain()


@pytest.mark.usefixtures("give_back_at_once")
def test_whoever_waits_for_an_answer_holds_no_connection(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="slow", delay=3))
    turn = control.start_turn(session, content="hi")
    mine: list[Any] = []

    def wait() -> None:
        Turn.objects.get(pk=turn.pk)
        mine.append(connections["default"])
        control.wait_for_turn(turn.pk, 30)
        connections.close_all()

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_until(lambda: mine and mine[0].connection is None)
    assert Turn.objects.get(pk=turn.pk).status == Turn.Status.RUNNING
    waiting.join()


def _spoken(turn: Turn, text: str) -> AnswerRecorder:
    model = turn.session.model
    assert model is not None
    call = reserve_call(turn.session.owner_id, model, "answer", TokenUse(input=0, output=0))
    recorder = AnswerRecorder(
        turn, model="a/model", context_version=0, request=Request(model="model"), call=call
    )
    recorder.record_delta(TextDelta(text))
    return recorder


async def _run_watched(turn: Turn, condition: Callable[[], bool]) -> None:
    with leases.get_turn_watcher().watch(turn.pk):
        await wait_until_async(condition)

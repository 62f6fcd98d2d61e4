"""The end of one part of a turn ends no other part; receivers of ends hold up no turn."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.dispatch import Signal
from django.utils import timezone
from knox.models import AuthToken
from rest_framework.test import APIClient

from chatcore.base.runner import ThreadTurnRunner, turn_runner
from chatcore.base.threads import RECEIVERS, OrderedThreads, run_in_thread
from chatcore.models import Session, Turn
from chatcore.signals import response_completed, turn_halted
from chatcore.turns import control, leases
from chatcore.turns.client_tools import ClientToolResult
from compaction.models import CompactionRun
from models_registry.models import AiModel
from tests.support.client_tool_requests import WEATHER, asking
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.django_db(transaction=True)

CLOSED_ELSEWHERE = "closed elsewhere"


@pytest.fixture
def connect() -> Iterator[Callable[..., None]]:
    """Connect receivers to signals for the time of the test."""
    connected: list[tuple[Signal, Any]] = []

    def connect_receiver(signal: Signal, receiver: Callable[..., None]) -> None:
        signal.connect(receiver, weak=False)
        connected.append((signal, receiver))

    yield connect_receiver
    for signal, receiver in connected:
        signal.disconnect(receiver)


class SlowReceiver:
    """A receiver that waits for the test, and then notes what was announced."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.begun: list[UUID] = []
        self.ended: list[UUID] = []

    def __call__(self, *, turn_id: UUID, **_: object) -> None:
        self.begun.append(turn_id)
        assert self.may_end.wait(60)
        self.ended.append(turn_id)


async def do_nothing(_: UUID) -> None:
    pass


def let_the_loop_turn(runner: Any) -> None:
    """Return when the runner's loop has done what was queued before."""
    turn_id = uuid4()
    runner.launch(turn_id, do_nothing)
    assert runner.wait(turn_id, 30)


def test_the_end_of_the_first_part_forgets_no_job_of_the_second() -> None:
    runner, turn_id = ThreadTurnRunner(), uuid4()
    may_end = {"first": threading.Event(), "second": threading.Event()}
    ended: list[str] = []

    def build_part(name: str) -> Callable[[UUID], Any]:
        async def work(_: UUID) -> None:
            try:
                await asyncio.to_thread(may_end[name].wait, 60)
            finally:
                ended.append(name)

        return work

    runner.launch(turn_id, build_part("first"))
    runner.launch(turn_id, build_part("second"))
    may_end["first"].set()
    wait_until(lambda: ended == ["first"])
    let_the_loop_turn(runner)
    assert (runner.list_turns(), runner.count()) == ([turn_id], 1)
    assert not runner.wait(turn_id, 0)
    runner.stop(60)
    may_end["second"].set()
    assert ended == ["first", "second"]
    assert not runner.cancel(turn_id)


def test_nor_does_the_end_of_the_second_before_that_of_the_first() -> None:
    runner, turn_id = ThreadTurnRunner(), uuid4()
    may_end = threading.Event()

    async def work(_: UUID) -> None:
        await asyncio.to_thread(may_end.wait, 60)

    runner.launch(turn_id, work)
    runner.launch(turn_id, do_nothing)
    assert runner.wait(turn_id, 60)
    assert runner.count() == 0
    runner.launch(turn_id, work)
    may_end.set()
    assert runner.wait(turn_id, 60)
    assert runner.count() == 0


def test_the_second_part_stays_watched_when_the_first_ends(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "WATCH_SECONDS", 0.01)
    turn = Turn.objects.create(session=session, lease_until=timezone.now() + leases.LEASE)
    Turn.objects.update(status=Turn.Status.INTERRUPTED)  # as another process would

    async def run_parts() -> None:
        watcher, may_end = leases.get_turn_watcher(), asyncio.Event()

        async def be_watched(condition: Callable[[], bool]) -> None:
            with watcher.watch(turn.pk):
                await wait_until_async(condition)

        first = asyncio.create_task(be_watched(may_end.is_set))
        second = asyncio.create_task(be_watched(lambda: False))
        await asyncio.sleep(0)
        may_end.set()
        await first
        with pytest.raises(asyncio.CancelledError):
            await second

    asyncio.run(run_parts())


def test_a_part_whose_end_is_stored_is_not_cancelled(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "WATCH_SECONDS", 0.01)
    look_after_turns, looks = leases._look_after_turns, []

    def count_looks(turn_ids: Any, *, renew: bool) -> Any:
        looks.append(set(turn_ids))
        return look_after_turns(turn_ids, renew=renew)

    monkeypatch.setattr(leases, "_look_after_turns", count_looks)
    turn = Turn.objects.create(session=session, lease_until=timezone.now() + leases.LEASE)
    Turn.objects.update(status=Turn.Status.COMPLETED)

    async def run_part() -> None:
        with leases.get_turn_watcher().watch(turn.pk) as watched:
            watched.is_over = True
            await wait_until_async(lambda: len(looks) > 3)

    asyncio.run(run_part())
    assert not any(looks)


def test_a_turn_that_is_resumed_before_its_first_part_has_ended_can_be_cancelled(
    session: Session, scripted: ScriptedModel, connect: Callable[..., None]
) -> None:
    resumed = threading.Event()

    def bring_result(*, session_id: UUID, status: str, **_: object) -> None:
        if status != Turn.Status.WAITING:
            return
        result = ClientToolResult(tool_call_id="r", content="Rain")
        control.submit_tool_results(Session.objects.get(pk=session_id), [result])
        resumed.set()

    connect(turn_halted, bring_result)
    scripted.script(Reply(tool_calls=[asking("Rome", id="r")]), Reply(text="slow", hang=True))
    turn = control.start_turn(session, content="Weather?", tools=[WEATHER])
    assert resumed.wait(60)
    wait_until(lambda: len(scripted.requests) == 2, what="the second request")
    let_the_loop_turn(turn_runner)
    assert turn_runner.list_turns() == [turn.pk]
    assert control.cancel_turn(session.pk)
    assert control.wait_for_turn(turn.pk, 60).status == Turn.Status.CANCELLED


def test_a_reply_waits_for_no_receiver(
    session: Session, connect: Callable[..., None], user: User
) -> None:
    receiver = SlowReceiver()
    connect(response_completed, receiver)
    _, token = AuthToken.objects.create(user)
    api = APIClient(headers={"Authorization": f"Bearer {token}"})
    try:
        reply = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"})
        assert (reply.status_code, receiver.ended) == (201, [])
    finally:
        receiver.may_end.set()
    turn_runner.drain(60)
    assert [str(turn_id) for turn_id in receiver.ended] == [str(reply.json()["turn"])]


def test_receivers_of_one_session_keep_the_order_of_its_turns(
    user: User, model: AiModel, connect: Callable[..., None]
) -> None:
    receiver = SlowReceiver()
    connect(response_completed, receiver)
    slow, other = (Session.objects.create(owner=user, model=model) for _ in range(2))

    def answer(session: Session) -> UUID:
        session.refresh_from_db()
        turn = control.wait_for_turn(control.start_turn(session, content="Hi").pk, 60)
        assert turn.status == Turn.Status.COMPLETED
        return turn.pk

    try:
        turns = [answer(slow) for _ in range(3)]
        between = answer(other)
        wait_until(lambda: between in receiver.begun, what="the receiver of the other session")
        assert receiver.begun == [turns[0], between]
    finally:
        receiver.may_end.set()
    turn_runner.drain(60)
    assert [turn for turn in receiver.ended if turn != between] == turns


def test_of_very_many_announcements_the_newest_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    threads, may_end = OrderedThreads("test", 1, limit=3), threading.Event()
    done: list[int] = []

    def work(number: int) -> None:
        assert may_end.wait(60)
        done.append(number)

    for number in range(4):
        threads.submit("key", partial(work, number))
    assert "another one is dropped" in caplog.text
    may_end.set()
    threads.drain(60)
    threads.submit("key", partial(work, 5))
    threads.drain(60)
    assert done == [0, 1, 2, 5]


def test_a_check_that_a_dead_process_did_not_make_is_made_after_the_next_response(
    full: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer() -> None:
        full.refresh_from_db()
        turn = control.start_turn(full, content="Hi")
        turn_runner.drain(60)
        assert control.wait_for_turn(turn.pk, 60).status == Turn.Status.COMPLETED

    with monkeypatch.context() as patch:
        patch.setattr(RECEIVERS, "submit", lambda *_: None)  # as a kill before it would
        answer()
    assert not CompactionRun.objects.exists()
    answer()
    assert CompactionRun.objects.get().trigger == CompactionRun.Trigger.AFTER_RESPONSE


def test_slow_receivers_hold_up_no_end_of_others_and_end_no_turn(
    user: User,
    model: AiModel,
    scripted: ScriptedModel,
    connect: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(leases, "WATCH_SECONDS", 0.01)
    receiver = SlowReceiver()
    connect(response_completed, receiver)
    turns = [
        control.start_turn(Session.objects.create(owner=user, model=model), content="Hi")
        for _ in range(10)
    ]
    completed = Turn.objects.filter(status=Turn.Status.COMPLETED)
    try:
        wait_until(lambda: completed.count() == 10, what="the ends of all turns")
        assert not receiver.ended
        watched = Turn.objects.create(
            session=Session.objects.create(owner=user, model=model),
            lease_until=timezone.now() + leases.LEASE,
        )
        turn_runner.launch(watched.pk, _lose)
        assert turn_runner.wait(watched.pk, 60)  # the watcher has looked at all turns, twice
    finally:
        receiver.may_end.set()
    turn_runner.drain(60)
    assert sorted(receiver.ended) == sorted(turn.pk for turn in turns)
    assert completed.count() == 10
    assert CLOSED_ELSEWHERE not in caplog.text


async def _lose(turn_id: UUID) -> None:
    """Be watched over until another process closes the turn."""
    with leases.get_turn_watcher().watch(turn_id):
        await run_in_thread(_interrupt, turn_id)
        await asyncio.sleep(60)


def _interrupt(turn_id: UUID) -> None:
    Turn.objects.filter(pk=turn_id).update(status=Turn.Status.INTERRUPTED)


def test_a_stop_waits_for_an_announcement_that_has_begun(
    session: Session,
    scripted: ScriptedModel,
    connect: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    receiver = SlowReceiver()
    connect(response_completed, receiver)
    turn = control.start_turn(session, content="Hi")
    wait_until(lambda: receiver.begun, what="the receiver")
    turn_runner.stop(0)
    assert not receiver.ended
    receiver.may_end.set()
    turn_runner.drain(60)
    assert receiver.ended == [turn.pk]
    turn.refresh_from_db()
    assert turn.status == Turn.Status.COMPLETED
    assert CLOSED_ELSEWHERE not in caplog.text


@pytest.mark.parametrize(
    ("reply", "is_cancelled", "halts"),
    [
        (Reply(tool_calls=[asking("Rome", id="r")]), False, ["waiting"]),
        (Reply(tool_calls=[asking("Rome", id="r")]), True, ["waiting", "cancelled"]),
        (Reply(status=400, text="no"), False, ["failed"]),
        (Reply(text="slow", hang=True), True, ["cancelled"]),
    ],
)
def test_each_end_without_an_answer_is_announced_once(
    reply: Reply,
    is_cancelled: bool,
    halts: list[str],
    session: Session,
    scripted: ScriptedModel,
    connect: Callable[..., None],
) -> None:
    announced: list[str] = []
    responses: list[UUID] = []
    connect(turn_halted, lambda *, status, **_: announced.append(str(status)))
    connect(response_completed, lambda *, turn_id, **_: responses.append(turn_id))
    scripted.script(reply)
    turn = control.start_turn(session, content="Weather?", tools=[WEATHER])
    wait_until(lambda: scripted.requests, what="the request")
    if not reply.hang:
        turn_runner.drain(60)
    if is_cancelled:
        control.cancel_turn(session.pk)
    turn_runner.drain(60)
    assert (announced, responses) == (halts, [])
    turn.refresh_from_db()
    assert turn.status == halts[-1]

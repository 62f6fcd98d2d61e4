"""Nobody's slow tool or crowd keeps others waiting: one order of locks, and pools apart."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from rest_framework.test import APIClient

from chatcore.base import threads
from chatcore.base.net import strangers
from chatcore.base.threads import ThreadPool, outlive_errors
from chatcore.models import McpServer, Session, Turn
from chatcore.tools.mcp.refresh import refresh_server
from chatcore.turns import control, lifecycle, recorder
from chatcore.turns.generation import CALLS_AT_ONCE
from models_registry.models import AiModel
from tests.support.mcp_server import ToolServer, running, tool_server
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until, wait_until_async

__all__ = ["running", "tool_server"]

WAIT = "mcp__files__wait"
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("give_back_at_once"),
]


class WatchedLock:
    """A lock that notes who waits for it with a connection in hand, and which threads hold one."""

    holders: set[int] = set()
    waits: list[bool] = []

    def __init__(self) -> None:
        self._lock = _real_lock()

    def acquire(self, blocking: bool = True) -> bool:
        if blocking:
            self.waits.append(connection.connection is not None)
        is_taken = self._lock.acquire(blocking)
        if is_taken:
            self.holders.add(threading.get_ident())
        return is_taken

    def release(self) -> None:
        self.holders.discard(threading.get_ident())
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


_real_lock = threading.Lock


@pytest.fixture
def watched_lock(monkeypatch: pytest.MonkeyPatch) -> type[WatchedLock]:
    monkeypatch.setattr(WatchedLock, "holders", set())
    monkeypatch.setattr(WatchedLock, "waits", [])
    monkeypatch.setattr(recorder, "threading", SimpleNamespace(Lock=WatchedLock))
    # Threads of earlier tests have connections that they close only before the next use.
    new_threads = ThreadPool("store", 4, has_own_connections=True)
    monkeypatch.setattr(threads, "STORING", new_threads)
    return WatchedLock


def test_no_lock_is_waited_for_with_a_connection_in_hand_nor_the_reverse(
    session: Session,
    scripted: ScriptedModel,
    watched_lock: type[WatchedLock],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connects_with_lock: list[str] = []
    real_connect = BaseDatabaseWrapper.connect

    def connect(self: BaseDatabaseWrapper) -> None:
        thread = threading.current_thread()
        # The writer of deltas holds locks, so its connection is not one of the pool.
        if thread.ident in watched_lock.holders and thread.name != "delta-writer":
            connects_with_lock.append(thread.name)
        real_connect(self)

    monkeypatch.setattr(BaseDatabaseWrapper, "connect", connect)
    scripted.default = Reply(chunks=["One ", "two ", "three."])
    for number in range(5):
        turn = control.start_turn(session, content=f"Count {number}.")
        assert control.wait_for_turn(turn.pk).status == Turn.Status.COMPLETED

    assert watched_lock.waits  # the ends of answers wait for the writer of deltas
    assert not any(watched_lock.waits)
    assert connects_with_lock == []


@pytest.fixture
def silent_session(session: Session, tool_server: ToolServer) -> Iterator[Session]:
    """A session whose tool answers when the test opens the gate."""
    server = McpServer(owner=session.owner, name="files", url=tool_server.url)
    server.require_approval = McpServer.Approval.NEVER
    server.save()
    assert refresh_server(server), server.error
    session.tools = [WAIT]
    session.save()
    yield session
    tool_server.gate.set()


def call_silent_tools(count: int) -> Reply:
    calls = [make_tool_call(WAIT, {"number": n}, id=f"call_{n}") for n in range(count)]
    return Reply(tool_calls=calls)


def test_a_stranger_is_waited_for_without_a_connection(
    silent_session: Session,
    scripted: ScriptedModel,
    tool_server: ToolServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    open_connections: list[bool] = []

    def run(work: Any) -> Any:
        open_connections.append(connection.connection is not None)
        return asyncio.run(work)

    monkeypatch.setattr(strangers, "asyncio", SimpleNamespace(run=run))
    tool_server.gate.set()
    scripted.script(call_silent_tools(2), Reply(text="Done."))
    turn = control.start_turn(silent_session, content="Wait.")
    assert control.wait_for_turn(turn.pk).status == Turn.Status.COMPLETED
    assert open_connections == [False, False]


def test_a_round_calls_so_many_tools_at_once_and_the_rest_waits(
    silent_session: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    scripted.script(call_silent_tools(CALLS_AT_ONCE + 3), Reply(text="Done."))
    turn = control.start_turn(silent_session, content="Wait.")
    wait_until(lambda: tool_server.silent_calls == CALLS_AT_ONCE, what="the first calls")
    tool_server.gate.set()
    assert control.wait_for_turn(turn.pk).status == Turn.Status.COMPLETED
    assert tool_server.silent_calls == CALLS_AT_ONCE + 3
    results = silent_session.messages.filter(role="tool").order_by("seq")
    assert {result.content for result in results} == {
        f"Number {number} has waited." for number in range(CALLS_AT_ONCE + 3)
    }


@pytest.mark.heavy
def test_silent_tools_of_one_person_keep_nobody_from_an_answer(
    silent_session: Session,
    model: AiModel,
    user: User,
    scripted: ScriptedModel,
    tool_server: ToolServer,
    as_user: Callable[[User], APIClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(settings.CHATCORE, "TURNS_PER_MINUTE", 1_000)
    sessions = [silent_session] + [
        Session.objects.create(owner=user, model=model, tools=[WAIT]) for _ in range(6)
    ]

    def reply(request: Any) -> Reply:
        asks_for_tools = any(WAIT in str(tool) for tool in request.get("tools", []))
        has_results = any(message["role"] == "tool" for message in request["messages"])
        return call_silent_tools(6) if asks_for_tools and not has_results else Reply(text="Hi.")

    scripted.default = reply
    silent_turns = [control.start_turn(silent, content="Wait.") for silent in sessions]
    wait_until(lambda: tool_server.silent_calls >= 16, what="as many calls as one person may have")

    bob = User.objects.create_user("bob")
    client = as_user(bob)
    for _ in range(3):
        session_id = client.post("/api/v1/sessions", {}).json()["id"]
        answer = client.post(f"/api/v1/sessions/{session_id}/messages", {"content": "Hello"})
        assert (answer.status_code, answer.json()["assistant_message"]["content"]) == (201, "Hi.")
    assert lifecycle.recover_dead_turns() == 0
    statuses = Turn.objects.filter(pk__in=[turn.pk for turn in silent_turns]).values_list("status")
    assert {status for (status,) in statuses} == {Turn.Status.RUNNING}
    tool_server.gate.set()
    for turn in silent_turns:
        assert control.wait_for_turn(turn.pk).status == Turn.Status.COMPLETED


def test_a_process_never_closes_a_turn_that_it_answers_itself(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["One ", "two."], cut_after=1, hang=True))
    turn = control.start_turn(session, content="Count.")
    wait_until(lambda: session.messages.filter(role="assistant").exists(), what="the first word")
    Turn.objects.filter(pk=turn.pk).update(lease_until="2026-01-01T00:00Z")

    assert lifecycle.recover_dead_turns() == 0
    turn.refresh_from_db()
    assert turn.status == Turn.Status.RUNNING
    assert turn.lease_until.year > 2025
    control.cancel_turn(session.pk)


def test_a_person_has_so_many_places_in_a_pool_and_others_have_theirs() -> None:
    pool = ThreadPool("test", 8, at_once=2)
    gate = threading.Event()
    running_counts: list[int] = []
    at_work = 0
    count_lock = threading.Lock()

    def work_until_open() -> None:
        nonlocal at_work
        with count_lock:
            at_work += 1
            running_counts.append(at_work)
        gate.wait()
        with count_lock:
            at_work -= 1

    async def try_pool() -> str:
        tasks = [asyncio.create_task(pool.run_for("alice", work_until_open)) for _ in range(20)]
        word = await pool.run_for("bob", lambda: "Bob is served.")
        await wait_until_async(lambda: at_work == 2, what="two works of Alice")
        gate.set()
        await asyncio.gather(*tasks)
        return word

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(asyncio.run, try_pool()).result() == "Bob is served."
    assert max(running_counts) == 2
    assert len(running_counts) == 20


def test_a_thread_that_others_depend_on_outlives_outages_and_bugs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for error in (OperationalError("server closed the connection unexpectedly"), KeyError("a bug")):
        with outlive_errors("the round failed"):
            raise error
    outage, bug = caplog.records
    assert (outage.levelname, outage.exc_info) == ("WARNING", None)
    assert bug.levelname == "ERROR"
    assert bug.exc_info

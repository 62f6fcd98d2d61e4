"""Requests run in threads that are used again, one request in each at a time."""

import asyncio
import threading
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.utils.module_loading import import_string
from knox.models import AuthToken

from chatcore.models import Session
from chatcore.serving.request_threads import (
    LARGE_BODY_BYTES,
    MAX_IDLE_THREADS,
    PAGE_MIDDLEWARE,
    RequestThread,
    RequestThreads,
)
from tests.conftest import Live
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import PATIENCE_SECONDS, wait_until_async


def get_thread() -> int:
    return threading.get_ident()


async def run_request(threads: RequestThreads) -> set[int]:
    """Run two synchronous parts of a request, and return the threads that they ran in."""
    async with threads.lend_thread():
        return {await sync_to_async(get_thread)() for _ in range(2)}


async def test_one_request_after_the_other_has_the_same_thread() -> None:
    threads = RequestThreads()
    names = [await run_request(threads) for _ in range(3)]
    assert names[0] == names[1] == names[2]
    assert len(names[0]) == 1


CROWD = MAX_IDLE_THREADS + 4


async def test_requests_at_once_have_threads_of_their_own() -> None:
    threads, barrier = RequestThreads(), threading.Barrier(CROWD, timeout=20)

    async def meet_the_others() -> int:
        async with threads.lend_thread():
            await sync_to_async(barrier.wait)()
            return await sync_to_async(get_thread)()

    assert len(set(await asyncio.gather(*(meet_the_others() for _ in range(CROWD))))) == CROWD
    assert len(threads._idle_threads) == MAX_IDLE_THREADS


async def test_a_thread_that_still_works_for_a_client_who_left_is_not_lent() -> None:
    threads, has_begun, go_on = RequestThreads(), threading.Event(), threading.Event()

    def work() -> None:
        has_begun.set()
        go_on.wait(PATIENCE_SECONDS)

    async def work_long() -> None:
        async with threads.lend_thread():
            await sync_to_async(work)()

    request = asyncio.create_task(work_long())
    await wait_until_async(has_begun.is_set)
    request.cancel()
    await asyncio.wait([request])
    try:
        assert threads._idle_threads == []
        assert await asyncio.wait_for(run_request(threads), 60)
    finally:
        go_on.set()


@pytest.mark.django_db(transaction=True)
async def test_a_thread_that_ends_closes_its_connection_to_the_database() -> None:
    threads, barrier = RequestThreads(), threading.Barrier(CROWD, timeout=PATIENCE_SECONDS)
    used: list[BaseDatabaseWrapper] = []

    def query() -> None:
        connections["default"].cursor().execute("SELECT 1")
        used.append(connections["default"])
        barrier.wait()

    async def serve_request() -> None:
        async with threads.lend_thread():
            await sync_to_async(query)()

    def count_open() -> int:
        return sum(wrapper.connection is not None for wrapper in used)

    await asyncio.gather(*(serve_request() for _ in range(CROWD)))
    await wait_until_async(lambda: count_open() <= MAX_IDLE_THREADS, what="connections to close")
    for thread in threads._idle_threads:
        thread.end()
    await wait_until_async(lambda: count_open() == 0, what="the others to close")


@pytest.mark.django_db(transaction=True)
def test_a_request_changes_threads_once(
    live: Live, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    submit = RequestThread.submit

    def note(self: RequestThread, call: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(call)
        return submit(self, call, *args, **kwargs)

    monkeypatch.setattr(RequestThread, "submit", note)
    _, token = AuthToken.objects.create(user)
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=live.url, headers=headers) as client:
        assert client.get("/api/v1/sessions").status_code == 200
    assert len(calls) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="a pool has the others")
def test_a_stream_leaves_the_connection_of_its_thread_for_the_next_request(
    live: Live, user: User, session: Session, scripted: ScriptedModel
) -> None:
    opened: list[str] = []

    def note(**_: object) -> None:
        opened.append(threading.current_thread().name)

    _, token = AuthToken.objects.create(user)
    headers = {"Authorization": f"Bearer {token}"}
    connection_created.connect(note)
    try:
        with httpx2.Client(base_url=live.url, headers=headers, timeout=PATIENCE_SECONDS) as client:
            for _ in range(4):
                scripted.script(Reply(chunks=["Yes."]))
                body = {"content": "Is it?", "stream": True}
                stream = client.post(f"/api/v1/sessions/{session.pk}/messages", json=body)
                assert "turn.completed" in stream.text
    finally:
        connection_created.disconnect(note)
    assert sum(name.startswith("request") for name in opened) <= 1


@pytest.mark.django_db(transaction=True)
def test_a_request_of_an_api_passes_no_middleware_that_is_for_pages(
    live: Live, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[str] = []
    for path in PAGE_MIDDLEWARE:
        middleware = import_string(path)
        call = middleware.__call__

        def note(self: Any, request: Any, _call: Any = call, _path: str = path) -> Any:
            passed.append(_path)
            return _call(self, request)

        monkeypatch.setattr(middleware, "__call__", note)
    _, token = AuthToken.objects.create(user)
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=live.url, headers=headers) as client:
        assert client.get("/api/v1/sessions").status_code == 200
        assert client.get("/v1/models").status_code == 200
        assert "<html" in client.get("/api/docs/").text
        assert passed == []
        assert client.get("/login/").status_code == 200
    assert set(passed) == PAGE_MIDDLEWARE


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no pool")
def test_a_pool_keeps_no_connection_that_carried_a_large_body(
    live: Live, user: User, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[Any] = []

    def note(*, connection: BaseDatabaseWrapper, **_: object) -> None:
        if threading.current_thread().name.startswith("request"):
            used.append(connection.connection)

    _, token = AuthToken.objects.create(user)
    headers = {"Authorization": f"Bearer {token}"}
    path = f"/api/v1/sessions/{session.pk}/attachments"
    pool = {"min_size": 1, "max_size": 5}
    connection.close()
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "pool", pool)
    connection_created.connect(note)
    try:
        with httpx2.Client(base_url=live.url, headers=headers, timeout=PATIENCE_SECONDS) as client:
            for size, is_closed in ((1_000, False), (LARGE_BODY_BYTES, True)):
                used.clear()
                file = ("notes.txt", b"word " * (size // 5), "text/plain")
                response = client.post(path, files={"file": file})
                assert response.status_code == 201, response.text
                assert used[-1].closed is is_closed
    finally:
        connection_created.disconnect(note)
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]

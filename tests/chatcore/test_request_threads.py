"""Requests run in threads that are used again, one request in each at a time."""

import asyncio
import threading

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from chatcore.serving.request_threads import MAX_IDLE_THREADS, RequestThreads
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


async def test_requests_at_once_have_threads_of_their_own() -> None:
    threads, barrier = RequestThreads(), threading.Barrier(20, timeout=20)

    async def meet_the_others() -> int:
        async with threads.lend_thread():
            await sync_to_async(barrier.wait)()
            return await sync_to_async(get_thread)()

    assert len(set(await asyncio.gather(*(meet_the_others() for _ in range(20))))) == 20
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
    threads, barrier = RequestThreads(), threading.Barrier(20, timeout=PATIENCE_SECONDS)
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

    await asyncio.gather(*(serve_request() for _ in range(20)))
    await wait_until_async(lambda: count_open() <= MAX_IDLE_THREADS, what="connections to close")
    for thread in threads._idle_threads:
        thread.end()
    await wait_until_async(lambda: count_open() == 0, what="the others to close")

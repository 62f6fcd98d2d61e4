"""Lend each request a thread of its own, and use threads and their connections again.

Django runs the parts of a request in one thread, and asgiref starts a new one for each request.
Django binds a database connection to its thread, so each request would also open a new one.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext

MAX_IDLE_THREADS = 8


class RequestThread(ThreadPoolExecutor):
    """One thread, and what it has been given to do."""

    def __init__(self) -> None:
        super().__init__(max_workers=1, thread_name_prefix="request")
        self._calls: set[Future[Any]] = set()

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run a call in the thread, after those that were submitted before."""
        future = super().submit(call, *args, **kwargs)
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        return future

    @property
    def is_busy(self) -> bool:
        """Return True while a call runs or waits."""
        return bool(self._calls)


class RequestThreads:
    """The threads of one event loop that no request has at the moment."""

    def __init__(self) -> None:
        self._idle_threads: list[RequestThread] = []

    @contextlib.asynccontextmanager
    async def lend_thread(self) -> AsyncIterator[None]:
        """Have the synchronous parts of the current task run in a thread of its own."""
        thread = self._idle_threads.pop() if self._idle_threads else RequestThread()
        try:
            async with ThreadSensitiveContext(executor=thread):
                yield
        finally:
            # The client of a long request may have left, and Python cannot stop the thread. Nobody
            # else may wait behind it, so it ends by itself.
            if thread.is_busy or len(self._idle_threads) >= MAX_IDLE_THREADS:
                thread.shutdown(wait=False)
            else:
                self._idle_threads.append(thread)


request_threads = RequestThreads()

"""Run blocking work in threads, so that an event loop never waits for it.

Work of one kind has threads of its own, so that no other kind can take them: a crowd of slow tools
must not keep a lease from being renewed. What nobody may hold up also has database connections of
its own, outside of the pool that requests share.
"""

import asyncio
import contextlib
import contextvars
import functools
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from asgiref.sync import sync_to_async
from django.db import Error as DatabaseProblem
from django.db import connections, reset_queries

from chatcore.base.databases.outages import (
    DATABASE_AWAY,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    StorageAway,
    find_outage,
    replace_lost_connections,
)

logger = logging.getLogger(__name__)


P = ParamSpec("P")
T = TypeVar("T")


def use_own_connection(*, lock_seconds: float | None = None) -> None:
    """Give the current thread a database connection that is not one of the pool.

    `lock_seconds` is how long SQLite waits for its lock before it raises an error.
    """
    connection = connections.create_connection("default")
    options = {**connection.settings_dict["OPTIONS"]}
    max_age = 600 if options.pop("pool", None) else connection.settings_dict["CONN_MAX_AGE"]
    if lock_seconds is not None and connection.vendor == "sqlite":
        options["timeout"] = lock_seconds
    if options != connection.settings_dict["OPTIONS"]:
        connection.settings_dict = {
            **connection.settings_dict,
            "OPTIONS": options,
            "CONN_MAX_AGE": max_age,
        }
        connections["default"] = connection


@contextlib.contextmanager
def outlive_errors(message: str) -> Iterator[None]:
    """Log what is raised inside and go on, for threads that others depend on.

    What is away comes back, so it is only warned of.
    """
    try:
        yield
    except Exception as error:
        if find_outage(error):
            logger.warning("%s: %s", message, error)
        else:
            logger.exception(message)


@contextlib.contextmanager
def repeat_beside(work: Callable[[], object], *, seconds: float, name: str) -> Iterator[None]:
    """Do some work every so many seconds until the block ends, in a thread of its own.

    It renews leases, which outlast a renewal or two, so a database that is away is only logged.
    """
    stop_event = threading.Event()

    def repeat() -> None:
        use_own_connection()
        while not stop_event.wait(seconds):
            try:
                work()
            except (DatabaseProblem, StorageAway):
                logger.warning("%s failed, and is tried again", name, exc_info=True)
            finally:
                connections.close_all()

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop_event.set()
        thread.join()


class ThreadPool:
    """Threads for one kind of work. They are started when they are needed.

    With `has_own_connections` each thread keeps a database connection outside of the pool of
    connections. With `at_once` only so much work of one person runs at a time in an event loop; the
    rest waits without a thread.
    """

    def __init__(
        self, name: str, size: int, *, has_own_connections: bool = False, at_once: int = 0
    ) -> None:
        self.size = size
        self._executor = ThreadPoolExecutor(
            size,
            thread_name_prefix=name,
            initializer=use_own_connection if has_own_connections else None,
        )
        self._at_once = at_once
        # A user's semaphore lives as long as work of theirs holds it or waits for it.
        self._places: WeakKeyDictionary[
            asyncio.AbstractEventLoop, WeakValueDictionary[Hashable, asyncio.Semaphore]
        ] = WeakKeyDictionary()

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in one of the threads, and return its result."""
        context = contextvars.copy_context()
        call = functools.partial(
            context.run, functools.partial(_run_with_fresh_connection, work, *args, **kwargs)
        )
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def run_for(
        self, person: Hashable, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work` for a person, after what they began before if that is too much."""
        loop = asyncio.get_running_loop()
        semaphores = self._places.setdefault(loop, WeakValueDictionary())
        semaphore = semaphores.setdefault(person, asyncio.Semaphore(self._at_once))
        async with semaphore:
            return await self.run(work, *args, **kwargs)


class OrderedThreads:
    """Threads for work that no caller waits for. Work with the same key runs in its order.

    At most `limit` pieces wait or run. A piece beyond that is dropped, so this is for work that is
    made up for later: the end of the process drops what it has no time for, too. Each thread keeps
    a database connection outside of the pool of connections.
    """

    def __init__(self, name: str, size: int, *, limit: int) -> None:
        self.size = size
        self._limit = limit
        self._executor = ThreadPoolExecutor(
            size, thread_name_prefix=name, initializer=use_own_connection
        )
        self._waiting: dict[Hashable, deque[Callable[[], object]]] = {}  # of each key at work
        self._count = 0
        self._change = threading.Condition()

    def submit(self, key: Hashable, work: Callable[[], object]) -> None:
        """Run `work` after the work that was submitted with this key before. Never blocks."""
        call = functools.partial(contextvars.copy_context().run, _run_with_fresh_connection, work)
        with self._change:
            if self._count >= self._limit:
                logger.error("%d pieces of work wait; another one is dropped", self._count)
                return
            self._count += 1
            is_at_work = key in self._waiting
            self._waiting.setdefault(key, deque()).append(call)
        if not is_at_work:
            self._executor.submit(self._run_next, key)

    def drain(self, timeout: float) -> None:
        """Wait until nothing waits or runs, at most `timeout` seconds."""
        with self._change:
            self._change.wait_for(lambda: not self._waiting, timeout)

    def drop_waiting(self) -> None:
        """Forget the work that has not begun."""
        with self._change:
            count = sum(map(len, self._waiting.values()))
            self._count -= count
            for calls in self._waiting.values():
                calls.clear()
        if count:
            logger.warning("%d pieces of work were dropped at the end", count)

    def _run_next(self, key: Hashable) -> None:
        with self._change:
            calls = self._waiting[key]
            call = calls.popleft() if calls else None
        if call:
            with outlive_errors("work that no caller waits for failed"):
                call()
        with self._change:
            self._count -= bool(call)
            has_next = bool(calls)
            if not has_next:
                del self._waiting[key]
                self._change.notify_all()
        if has_next:
            self._executor.submit(self._run_next, key)


# Ends of answers and results of tools: what people have seen must be stored, whatever else waits.
# Four connections a process, because one more costs PostgreSQL 5 to 10 MB.
STORING = ThreadPool("store", 4, has_own_connections=True)
# Receivers of the signals that announce ends of turns. They may be slow, and are any app's.
RECEIVERS = OrderedThreads("receive", 3, limit=1_000)
LEASES = ThreadPool("leases", 1, has_own_connections=True)
RECOVERY = ThreadPool("recovery", 1, has_own_connections=True)
# Tools and tool servers, which may be silent for as long as CHATCORE_MCP_SECONDS.
TOOLS = ThreadPool("tool", 128, at_once=16)
# What happens before a request to a model, which may include the writing of a summary.
PREPARATION = ThreadPool("prepare", 128, at_once=16)


async def run_in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking `work` in a thread of the loop's own pool and return its result.

    It is for short work of the database, and never waits for a stranger. Its connection is given
    back afterwards. Django binds a connection to its thread, so idle threads would otherwise hold
    all connections of a pool.
    """
    return await sync_to_async(
        functools.partial(_run_with_fresh_connection, work), thread_sensitive=False
    )(*args, **kwargs)


async def run_or_undo(work: Callable[[], T], undo: Callable[[T], object]) -> T:
    """Run `work` as `run_in_thread` does; undo what it did if its caller is cancelled meanwhile.

    A thread goes on after its caller is cancelled, so what it returns would never be released.
    """
    task = asyncio.ensure_future(run_in_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if task.exception() is None:
            with outlive_errors("what was begun for a client that left could not be ended"):
                await run_in_thread(undo, task.result())
        raise


def give_back_connection() -> None:
    """Give the thread's connection back to the pool before a wait for a lock or for a stranger.

    Whoever waits with a connection in hand keeps it from all others of the process. The next query
    takes another one. Nothing happens inside a transaction, where no wait has any business: Django
    would close a connection that is not in its autocommit mode.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


def _run_with_fresh_connection(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return work(*args, **kwargs)
    except DatabaseProblem as error:
        if find_outage(error) is DATABASE_AWAY:
            replace_lost_connections()
        raise
    finally:
        give_back_connection()
        # With DEBUG on, Django collects all statements of a connection until a request ends. These
        # threads serve no request, so the list, with its texts, would only grow.
        reset_queries()


async def run_until_stored(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run short `work` of a turn in a thread that nothing else can take, until it is done.

    `work` is one transaction, or changes nothing, and waits for nobody but the database.
    """
    return await keep_trying(lambda: STORING.run(work, *args, **kwargs))


async def finish(work: Coroutine[object, None, T]) -> asyncio.Task[T]:
    """Finish the work however often this task is cancelled, and return it as a task that is done.

    A cancellation can come at any await: twice from a user, or from the user and then from the end
    of the process. Without this, the second one would cut off the write that closes a turn, and the
    turn would stay open until its lease ends. `wait` lets the work go on when the cancellation hits
    the wait for it; the loop then waits again. The cancellation is dropped on purpose: this work is
    the last step of the task, or leads to it.
    """
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task


async def keep_trying(attempt: Callable[[], Awaitable[T]]) -> T:
    """Make an attempt; while the database is away, locked or full, make another one.

    There is no last attempt: the text of an answer, or the result of a delivery, is in memory
    alone. The end of the process cancels the task. Any other error of the database is raised:
    another attempt would fail as well.
    """
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return await attempt()
        except DatabaseProblem as error:
            if find_outage(error) is None:
                raise
            logger.warning("the database did not answer; it is asked again: %s", error)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

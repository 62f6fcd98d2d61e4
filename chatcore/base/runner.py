"""Run turns apart from the requests that ask for them.

CHATCORE["RUNNER"] may name a class that does so in another way. It has the public methods of
ThreadTurnRunner, lets a turn outlive its caller, and holds a reference to each task: the event loop
holds none, and Python would collect a task that waits.
"""

import asyncio
import functools
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

from django.conf import settings
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string

from chatcore.base.threads import RECEIVERS, outlive_errors

logger = logging.getLogger(__name__)

# For chores, of which a deletion may last, and for short work of turns. What lasts or may not wait
# has threads of its own (chatcore/base/threads.py). Twice as many as a pool has connections: work
# that waits for one must keep out no work that needs none.
THREAD_COUNT = 40

Work = Callable[[UUID], Coroutine[object, None, None]]
Chore = Callable[[], Coroutine[object, None, object]]


@dataclass
class _Job:
    completion: threading.Event = field(default_factory=threading.Event)
    task: asyncio.Task[None] | None = None

    def begin(self, turn_id: UUID, work: Work, on_end: Callable[[], object]) -> None:
        """Create the task; runs on the loop."""
        self.task = asyncio.get_running_loop().create_task(work(turn_id))

        def finish_job(_: asyncio.Task[None]) -> None:
            on_end()
            self.completion.set()

        self.task.add_done_callback(finish_job)

    def cancel(self) -> None:
        """Cancel the task after its first step; runs on the loop.

        The turn is closed by the task itself, in the handler of its CancelledError. asyncio never
        starts a task that is cancelled before its first step, so that handler would not run and the
        turn would stay open until its lease ends. The first step was queued when the task was
        created; `call_soon` queues the cancellation behind it.
        """
        if self.task:
            self.task.get_loop().call_soon(self.task.cancel)


class ThreadTurnRunner:
    """Runs all turns of a process on one event loop, in a thread of its own.

    The loop is not that of a connection: a turn outlives the request that asked for it, and tests
    and commands, which have no such loop, start turns too. Any thread may call all methods.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._jobs: dict[UUID, _Job] = {}

    def launch(self, turn_id: UUID, work: Work) -> None:
        """Start `work(turn_id)`; called after the transaction that began the turn is committed."""
        job = _Job()
        with self._lock:
            self._jobs[turn_id] = job
        self._ensure_loop().call_soon_threadsafe(
            job.begin, turn_id, work, lambda: self._forget(turn_id, job)
        )

    def run_periodically(self, seconds: float, chore: Chore) -> None:
        """Run a chore every so many seconds while the process lives; log a failure and go on."""

        async def repeat_chore() -> None:
            while True:
                with outlive_errors("chore failed"):
                    await chore()
                await asyncio.sleep(seconds)

        asyncio.run_coroutine_threadsafe(repeat_chore(), self._ensure_loop())

    def cancel(self, turn_id: UUID) -> bool:
        """Cancel a turn; return False if another process runs it, or if it has ended."""
        job = self._jobs.get(turn_id)
        if job is None:
            return False
        self._ensure_loop().call_soon_threadsafe(job.cancel)
        return True

    def count(self) -> int:
        """Return how many turns this process runs."""
        return len(self._jobs)

    def list_turns(self) -> list[UUID]:
        """Return the turns that this process runs."""
        return list(self._jobs)

    def wait(self, turn_id: UUID, timeout: float | None = None) -> bool:
        """Block until this process runs the turn no more; return False after `timeout` seconds."""
        job = self._jobs.get(turn_id)
        return job.completion.wait(timeout) if job else True

    def drain(self, timeout: float = 10.0) -> None:
        """Block until no turn runs, at most `timeout` seconds for each, and no receiver."""
        for turn_id in list(self._jobs):
            self.wait(turn_id, timeout)
        RECEIVERS.drain(timeout)

    def stop(self, timeout: float = 4.0) -> None:
        """Cancel all turns at the end of the process.

        Each has `timeout` seconds to store the part of the answer that has arrived, and so have the
        receivers of all ends. What they have not begun by then is dropped: the next response of a
        session makes its check.
        """
        for turn_id in list(self._jobs):
            self.cancel(turn_id)
        self.drain(timeout)
        RECEIVERS.drop_waiting()

    def _forget(self, turn_id: UUID, job: _Job) -> None:
        """Remove a job that has ended.

        A turn that waited may have been resumed before the task of its first part ended. Then the
        entry is that of the second part, which goes on.
        """
        with self._lock:
            if self._jobs.get(turn_id) is job:
                del self._jobs[turn_id]

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = _new_event_loop()
                self._loop.set_default_executor(
                    ThreadPoolExecutor(THREAD_COUNT, thread_name_prefix="turn")
                )
                threading.Thread(
                    target=self._loop.run_forever, name="generator", daemon=True
                ).start()
            return self._loop


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop of the fastest kind that is installed; uvloop has no Windows."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


_creation_lock = threading.Lock()


@functools.cache
def _create_turn_runner() -> ThreadTurnRunner:
    path = settings.CHATCORE.get("RUNNER")
    runner: ThreadTurnRunner = import_string(path)() if path else ThreadTurnRunner()
    return runner


def _get_turn_runner() -> ThreadTurnRunner:
    # Two requests may be the first at once. A second runner would not know the jobs of the other,
    # and neither `functools.cache` nor SimpleLazyObject prevents it.
    with _creation_lock:
        return _create_turn_runner()


# One for each process, created at its first use: then the settings can be read.
turn_runner = cast(ThreadTurnRunner, SimpleLazyObject(_get_turn_runner))

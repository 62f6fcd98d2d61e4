"""The thread that generates answers: one event loop a process, apart from every connection that asks for one."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

logger = logging.getLogger(__name__)

THREAD_COUNT = 64  # a compaction before a request, or a slow tool, holds one for minutes; leases and deltas of other turns must not wait for it

Work = Callable[[UUID], Coroutine[Any, Any, None]]


@dataclass
class _Job:
    completion: threading.Event = field(default_factory=threading.Event)
    task: asyncio.Task[None] | None = None

    def begin(self, turn_id: UUID, work: Work, on_end: Callable[[], Any]) -> None:
        self.task = asyncio.get_running_loop().create_task(work(turn_id))

        def finish_job(_: asyncio.Task[None]) -> None:
            on_end()
            self.completion.set()

        self.task.add_done_callback(finish_job)

    def cancel(self) -> None:
        if self.task:  # after its first step: a task canceled before that never begins, and its turn would not be closed
            self.task.get_loop().call_soon(self.task.cancel)


class TurnRunner:
    """Runs turns as detached tasks and keeps strong references to them, so neither a closed socket nor the collector stops one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._jobs: dict[UUID, _Job] = {}

    def launch(self, turn_id: UUID, work: Work) -> None:
        """Start `work(turn_id)` now, from any thread."""
        job = self._jobs[turn_id] = _Job()
        self._ensure_loop().call_soon_threadsafe(
            job.begin, turn_id, work, lambda: self._jobs.pop(turn_id, None)
        )

    def run_periodically(
        self, seconds: float, chore: Callable[[], Coroutine[Any, Any, Any]]
    ) -> None:
        """Run a chore again and again while the process lives; a failed one is logged and tried again."""

        async def repeat_chore() -> None:
            while True:
                try:
                    await chore()
                except Exception:
                    logger.exception("chore failed")
                await asyncio.sleep(seconds)

        asyncio.run_coroutine_threadsafe(repeat_chore(), self._ensure_loop())

    def cancel(self, turn_id: UUID) -> bool:
        """Cancel a turn that this process generates; False when it is another's or over."""
        job = self._jobs.get(turn_id)
        if job is None:
            return False
        self._ensure_loop().call_soon_threadsafe(job.cancel)
        return True

    def wait(self, turn_id: UUID, timeout: float | None = None) -> bool:
        """Block until this process no longer works on the turn. False when `timeout` seconds passed first."""
        job = self._jobs.get(turn_id)
        return job.completion.wait(timeout) if job else True

    def stop(self, timeout: float = 4.0) -> None:
        """Cancel every turn and give them `timeout` seconds to write down what was said; for the end of the process."""
        for turn_id in list(self._jobs):
            self.cancel(turn_id)
        self.drain(timeout)

    def drain(self, timeout: float = 10.0) -> None:
        """Wait until no turn is left, `timeout` seconds for each at most."""
        for turn_id in list(self._jobs):
            self.wait(turn_id, timeout)

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_default_executor(
                    ThreadPoolExecutor(THREAD_COUNT, thread_name_prefix="turn")
                )
                threading.Thread(
                    target=self._loop.run_forever, name="generator", daemon=True
                ).start()
            return self._loop


turn_runner = TurnRunner()

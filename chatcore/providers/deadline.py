"""A time limit for the many waits of one stream."""

import asyncio
from types import TracebackType


class Deadline:
    """Limits every wait inside `with deadline`, and between two `renew` all of them together.

    It is `asyncio.timeout` for a wait that is repeated: one timer runs, which looks at the deadline
    only when it fires, where `asyncio.timeout` would set and cancel one for each wait. Raises
    TimeoutError.
    """

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._time = self._loop.time() + seconds
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancel_count = 0
        self._has_expired = False

    def renew(self) -> None:
        """Begin anew to count."""
        self._time = self._loop.time() + self._seconds

    def close(self) -> None:
        """Stop the timer."""
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task, "only a task can be stopped"
        self._task = task
        self._cancel_count = task.cancelling()
        if not self._timer:
            self._timer = self._loop.call_at(self._time, self._check)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        # A cancellation from outside may have come in the same moment, and then it stays one.
        is_ours = self._has_expired and task and task.uncancel() <= self._cancel_count
        if is_ours and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _check(self) -> None:
        self._timer = None
        if not self._task:
            return  # nobody waits; the next wait starts the timer again
        if self._loop.time() < self._time:
            self._timer = self._loop.call_at(self._time, self._check)
        elif not self._has_expired:
            self._has_expired = True
            self._task.cancel()

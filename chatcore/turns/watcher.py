"""Watch over the turns of this process: renew their leases, and cancel the tasks that must stop."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection, Iterator
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import Error as DatabaseProblem

from chatcore.models import Turn
from chatcore.threads import LEASES
from chatcore.turns.leases import LEASE, renew_leases

logger = logging.getLogger(__name__)

WATCH_SECONDS = 1.0  # how often cancellations by other processes are looked for
RENEWALS = 4  # in the time of one lease


class TurnWatcher:
    """Watches over the tasks of one event loop that generate turns.

    One query looks for all turns, so the cost does not grow with their number. The leases have
    their own slow clock: no write of an answer renews them.
    """

    def __init__(self) -> None:
        self._tasks: dict[UUID, asyncio.Task[object]] = {}
        self._watch_task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def watch(self, turn_id: UUID) -> Iterator[None]:
        """Watch over the turn of the current task for as long as the context lasts."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks[turn_id] = task
        if self._watch_task is None or self._watch_task.done():
            self._watch_task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self._tasks.pop(turn_id, None)

    async def _watch(self) -> None:
        """Look after all turns until there is none.

        An error of the database is logged and tried again: the lease outlives several attempts.
        """
        renewed_at = time.monotonic()
        closed_before: set[UUID] = set()
        await asyncio.sleep(WATCH_SECONDS)
        while self._tasks:
            is_renewal_due = time.monotonic() - renewed_at > LEASE.total_seconds() / RENEWALS
            try:
                cancelled_turns, closed_turns = await LEASES.run(
                    _look_after_turns, list(self._tasks), renew=is_renewal_due
                )
            except DatabaseProblem as error:
                logger.warning("the leases of turns were not looked after: %s", error)
            else:
                renewed_at = time.monotonic() if is_renewal_due else renewed_at
                # The task may have closed its turn itself, and be about to end. One that is still
                # there at the next look has lost its turn to another process.
                for turn_id in cancelled_turns | (closed_turns & closed_before):
                    if turn_id in self._tasks:
                        self._tasks[turn_id].cancel()
                closed_before = closed_turns
            await asyncio.sleep(WATCH_SECONDS)


def _look_after_turns(turn_ids: Collection[UUID], *, renew: bool) -> tuple[set[UUID], set[UUID]]:
    """Return those turns that users cancelled, and those that are no longer running."""
    if renew:
        renew_leases(turn_ids)
    running_turns = Turn.objects.filter(pk__in=turn_ids, status=Turn.Status.RUNNING)
    flags = dict(running_turns.values_list("pk", "cancel_requested"))
    return {turn_id for turn_id in flags if flags[turn_id]}, set(turn_ids) - flags.keys()


_watchers: WeakKeyDictionary[asyncio.AbstractEventLoop, TurnWatcher] = WeakKeyDictionary()


def get_turn_watcher() -> TurnWatcher:
    """Return the watcher of the running event loop."""
    return _watchers.setdefault(asyncio.get_running_loop(), TurnWatcher())

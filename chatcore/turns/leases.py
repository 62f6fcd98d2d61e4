"""Leases of running turns: renewed while their tasks live. A session has one open turn at most."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import Error as DatabaseProblem
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.compiled_queries import CompiledQuery
from chatcore.base.databases.literals import Literal
from chatcore.base.process_locks import get_own_process, list_dead_processes
from chatcore.base.threads import LEASES
from chatcore.models import Session, Turn, statements
from chatcore.models.statements import MEASURED_COLUMNS

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)  # how long a process that renews nothing is believed to be alive
RENEWALS = 4  # in the time of one lease
WATCH_SECONDS = 1.0  # how often cancellations by other processes are looked for


class TurnLost(Exception):
    """The turn was closed by another process, which took this one for dead."""


class TurnCancelled(Exception):
    """A user cancelled the turn before its end was stored."""


class TurnRunning(Exception):
    """The session has an open turn already.

    `is_waiting`: it waits for the results of tools that the client runs. `is_repeat`: it is the
    turn that the same idempotency key began.
    """

    def __init__(
        self,
        turn_id: UUID,
        session_id: UUID,
        *,
        is_waiting: bool = False,
        is_repeat: bool = False,
    ) -> None:
        state = "waiting for results of tools" if is_waiting else "running"
        super().__init__(f"Turn {turn_id} is still {state}.")
        self.turn_id = turn_id
        self.session_id = session_id
        self.is_waiting = is_waiting
        self.is_repeat = is_repeat


class LockedTurn(NamedTuple):
    """What the lock of a running turn shows of it, and of its session."""

    is_cancel_requested: bool
    measured_columns: Mapping[str, object]

    def is_session_as(self, session: Session, *, context_version: int | None) -> bool:
        """Return True if what decides about the size of its context is as in this object."""
        known = {name: getattr(session, name) for name in MEASURED_COLUMNS}
        return self.measured_columns == known | {"context_version": context_version}


class OpenTurn(NamedTuple):
    """The turn of a session that runs, or waits for its client."""

    id: UUID
    status: str


# The statuses are literals, so that SQLite uses the index of open turns too.
_OPEN_TURNS = CompiledQuery(
    lambda session_id: Turn.objects.filter(
        session=session_id, status__in=[Literal(status) for status in Turn.OPEN_STATUSES]
    ).values_list("pk", "status")
)


def find_open_turn(session_id: UUID) -> OpenTurn | None:
    """Return the open turn of a session, if it has one."""
    for row in _OPEN_TURNS.fetch(session_id):
        return OpenTurn(*row)
    return None


def lock_running_turn(turn_id: UUID) -> LockedTurn:
    """Lock the turn's row, as the first step of every transaction that writes for a turn.

    So nobody closes the turn before the transaction ends. A closed turn is never opened again, so
    its status is enough of a fence: a process that was taken for dead and wakes up stores nothing
    more. Raises TurnLost if the turn is no longer running.
    """
    row = statements.lock_running_turn(turn_id)
    if row is None:
        raise TurnLost(str(turn_id))
    return LockedTurn(row.pop("cancel_requested"), row)


def renew_leases(turn_ids: Collection[UUID]) -> None:
    """Renew the leases of those turns that are still running.

    Rows that another transaction has locked are left out, as in `lock_free_turns`: two transactions
    that wait for each other's rows would be a deadlock, and a lease outlasts some renewals.
    """
    if not turn_ids:
        return
    with transaction.atomic():
        running_turns = Turn.objects.filter(pk__in=turn_ids, status=Turn.Status.RUNNING)
        free_turns = running_turns.select_for_update(no_key=True, skip_locked=True)
        free_ids = list(free_turns.values_list("pk", flat=True))
        Turn.objects.filter(pk__in=free_ids).update(lease_until=read_clock() + LEASE)


def compute_lease_end() -> CombinedExpression:
    """Return until when a lease lasts that begins now, for the statement that stores it."""
    return Now() + LEASE


def find_own_process() -> UUID | None:
    """Return the process that answers the turns which begin here; None if another one may."""
    return None if settings.CHATCORE.get("RUNNER") else get_own_process()


def query_dead_turns() -> QuerySet[Turn]:
    """Return the running turns whose process has died.

    One of this machine is known to be dead at once, by the lock that it held; of others, the lease
    has to end. Nobody writes a lease that lasts longer than LEASE. One that seems to was written by
    a clock that was wrong, and would keep its session closed until then.
    """
    now = read_clock()
    is_over = Q(lease_until__lt=now) | Q(lease_until__gt=now + 2 * LEASE)
    if dead_processes := list_dead_processes():
        is_over |= Q(process__in=dead_processes)
    return Turn.objects.filter(is_over, status=Turn.Status.RUNNING)


def refuse_open_turn(session: Session) -> None:
    """Raise TurnRunning if the session, whose row is locked, has an open turn."""
    turn = find_open_turn(session.pk)
    if turn:
        raise TurnRunning(turn.id, session.pk, is_waiting=turn.status == Turn.Status.WAITING)


@dataclass(eq=False)
class WatchedTurn:
    """One part of a turn, and the task that works on it.

    A turn that waited is resumed by another task, perhaps before the first one has ended. `is_over`
    is set by the thread that has stored the end of the part: from then on it has no lease to lose.
    """

    turn_id: UUID
    task: asyncio.Task[object]
    is_over: bool = False


class TurnWatcher:
    """Watches over the tasks of one event loop that generate turns.

    One query looks for all turns, so the cost does not grow with their number. The leases have
    their own slow clock: no write of an answer renews them.
    """

    def __init__(self) -> None:
        self._watched: set[WatchedTurn] = set()
        self._watch_task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def watch(self, turn_id: UUID) -> Iterator[WatchedTurn]:
        """Watch over the turn of the current task for as long as the context lasts."""
        task = asyncio.current_task()
        assert task is not None
        watched = WatchedTurn(turn_id, task)
        self._watched.add(watched)
        if self._watch_task is None or self._watch_task.done():
            self._watch_task = asyncio.create_task(self._watch())
        try:
            yield watched
        finally:
            self._watched.discard(watched)

    async def _watch(self) -> None:
        """Look after all turns until there is none.

        An error of the database is logged and tried again: the lease outlives several attempts.
        """
        renewed_at = time.monotonic()
        closed_before: set[WatchedTurn] = set()
        await asyncio.sleep(WATCH_SECONDS)
        while self._watched:
            is_renewal_due = time.monotonic() - renewed_at > LEASE.total_seconds() / RENEWALS
            watched_turns = {watched for watched in self._watched if not watched.is_over}
            turn_ids = {watched.turn_id for watched in watched_turns}
            try:
                cancelled_ids, closed_ids = await LEASES.run(
                    _look_after_turns, turn_ids, renew=is_renewal_due
                )
            except DatabaseProblem as error:
                logger.warning("the leases of turns were not looked after: %s", error)
            else:
                renewed_at = time.monotonic() if is_renewal_due else renewed_at
                closed_turns = {item for item in watched_turns if item.turn_id in closed_ids}
                # The task may have closed its turn itself, and be about to note it. One that is
                # still there at the next look has lost its turn to another process.
                for watched in watched_turns & self._watched:
                    is_lost = watched in closed_turns & closed_before
                    if not watched.is_over and (is_lost or watched.turn_id in cancelled_ids):
                        watched.task.cancel()
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

"""Leases of running turns, and the refusal of a second turn in a session."""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet

from chatcore.databases.clock import read_clock
from chatcore.models import Session, Turn
from chatcore.turns import queries

LEASE = timedelta(seconds=30)  # how long a process that renews nothing is believed to be alive


class TurnLost(Exception):
    """The turn was closed by another process, which took this one for dead."""


class TurnCancelled(Exception):
    """A user cancelled the turn before its end was stored."""


class TurnRunning(Exception):
    """The session has an open turn already.

    `is_waiting`: it waits for the results of tools that the client runs. `is_repeat`: it is the
    turn that the same idempotency key began.
    """

    def __init__(self, turn_id: UUID, *, is_waiting: bool = False, is_repeat: bool = False) -> None:
        state = "waiting for results of tools" if is_waiting else "running"
        super().__init__(f"Turn {turn_id} is still {state}.")
        self.turn_id = turn_id
        self.is_waiting = is_waiting
        self.is_repeat = is_repeat


def lock_running_turn(turn_id: UUID) -> queries.LockedTurn:
    """Lock the turn's row, as the first step of every transaction that writes for a turn.

    So nobody closes the turn before the transaction ends. A closed turn is never opened again, so
    its status is enough of a fence: a process that was taken for dead and wakes up stores nothing
    more. Raises TurnLost if the turn is no longer running.
    """
    locked_turn = queries.lock_if_running(turn_id)
    if locked_turn is None:
        raise TurnLost(str(turn_id))
    return locked_turn


def renew_leases(turn_ids: Collection[UUID]) -> None:
    """Renew the leases of those turns that are still running."""
    if not turn_ids:
        return
    running_turns = Turn.objects.filter(pk__in=turn_ids, status=Turn.Status.RUNNING)
    running_turns.update(lease_until=compute_lease_end())


def compute_lease_end() -> datetime:
    """Return until when a lease lasts that begins now, by the database's clock."""
    return read_clock() + LEASE


def query_dead_turns() -> QuerySet[Turn]:
    """Return the running turns whose process has died.

    Nobody writes a lease that lasts longer than LEASE. One that seems to was written by a clock
    that was wrong, and would keep its session closed until then.
    """
    now = read_clock()
    is_over = Q(lease_until__lt=now) | Q(lease_until__gt=now + 2 * LEASE)
    return Turn.objects.filter(is_over, status=Turn.Status.RUNNING)


def lock_turns(turns: QuerySet[Turn]) -> int:
    """Lock the rows of these turns, inside a transaction, and return how many there are.

    Deletions need it: turns are locked before their session (SessionQuerySet.lock says why), and by
    primary key, so that two deletions cannot wait for each other.
    """
    return len(turns.select_for_update().order_by("pk").values_list("pk"))


def refuse_open_turn(session: Session) -> None:
    """Raise TurnRunning if the session, whose row is locked, has an open turn."""
    turn = queries.find_open_turn(session.pk)
    if turn:
        raise TurnRunning(turn.id, is_waiting=turn.status == Turn.Status.WAITING)

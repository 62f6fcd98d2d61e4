"""Leases of running turns, and the refusal of a second turn in a session."""

from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from chatcore.models import Session, Turn

LEASE = timedelta(seconds=30)  # how long a process that writes nothing is believed to be alive


class TurnLost(Exception):
    """The turn was closed by another process, which took this one for dead."""


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


def renew_lease(turn_id: UUID) -> None:
    """Renew the lease, as the first step of every transaction that writes for a turn.

    The UPDATE locks the turn's row, so nobody closes the turn before the transaction ends. A closed
    turn is never opened again, so its status is enough of a fence: a process that was taken for
    dead and wakes up stores nothing more. Raises TurnLost if the turn is no longer running.
    """
    running_turn = Turn.objects.filter(pk=turn_id, status=Turn.Status.RUNNING)
    if not running_turn.update(lease_until=timezone.now() + LEASE):
        raise TurnLost(str(turn_id))


def lock_turns(turns: QuerySet[Turn]) -> int:
    """Lock the rows of these turns, inside a transaction, and return how many there are.

    Deletions need it: turns are locked before their session (SessionQuerySet.lock says why), and by
    primary key, so that two deletions cannot wait for each other.
    """
    return len(turns.select_for_update().order_by("pk").values_list("pk"))


def refuse_open_turn(session: Session) -> None:
    """Raise TurnRunning if the session, whose row is locked, has an open turn."""
    turn = session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    if turn:
        raise TurnRunning(turn.pk, is_waiting=turn.status == Turn.Status.WAITING)

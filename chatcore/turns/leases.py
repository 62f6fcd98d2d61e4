"""Who answers a session: the lease of its turn, and the refusal of whoever comes meanwhile."""

from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from chatcore.models import Session, Turn

LEASE = timedelta(seconds=30)


class TurnLost(Exception):
    """Another process has taken this turn for dead and closed it; what it stored stands."""


class TurnRunning(Exception):
    """The session is still answering, or `waiting` for results of tools that the client runs; `repeated`, what was asked now again."""

    def __init__(self, turn_id: UUID, *, is_waiting: bool = False, is_repeat: bool = False) -> None:
        super().__init__(
            f"Turn {turn_id} is still {'waiting for results of tools' if is_waiting else 'running'}."
        )
        self.turn_id = turn_id
        self.is_waiting = is_waiting
        self.is_repeat = is_repeat


def renew_lease(turn_id: UUID) -> None:
    """Renew the lease, inside the transaction that writes for the turn. Raises TurnLost when it is no longer ours."""
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
    """Raises TurnRunning when the session, whose row is locked, is being answered or waits for its client."""
    turn = session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    if turn:
        raise TurnRunning(turn.pk, is_waiting=turn.status == Turn.Status.WAITING)

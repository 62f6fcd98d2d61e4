"""Delete a session with everything in it."""

from collections.abc import Callable, Collection
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chatcore.base.databases.clock import read_clock
from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session, Turn
from chatcore.sessions.discarding import purge_session

# How long a request deletes rows. What is left of a long session is deleted in the background.
REQUEST_SECONDS = 1.0
NO_GRACE = timedelta()


def delete_session(
    session_id: UUID,
    *,
    check: Callable[[Session], None] | None = None,
    grace: timedelta = NO_GRACE,
) -> None:
    """Delete a session and all its rows; an answer that is being generated is stopped.

    The session is gone for everyone at once. Its rows follow in short transactions; those of a long
    session are deleted by `purge_due_sessions`. With `grace` they stay so long, and staff may bring
    the session back. `check` is called with the locked session, and what it raises keeps it.
    """
    is_hidden = False
    while not is_hidden:
        is_hidden = _hide_session(session_id, check, grace)
    if grace:
        return
    # Not inside a transaction of the caller, which would make one long one of the short ones.
    transaction.on_commit(lambda: purge_session(session_id, seconds=REQUEST_SECONDS))


def bring_back(session_ids: Collection[UUID]) -> int:
    """Show sessions again that retention has hidden; return how many. They count as just used."""
    now = read_clock()
    expired_sessions = Session.all_objects.filter(
        pk__in=session_ids, expired_at__isnull=False, discard_at__gt=now
    )
    return expired_sessions.update(discard_at=None, expired_at=None, updated_at=now)


def _hide_session(
    session_id: UUID, check: Callable[[Session], None] | None, grace: timedelta
) -> bool:
    """Close and hide the session unless a turn has begun meanwhile; return False in that case."""
    with transaction.atomic():
        open_turns = Turn.objects.filter(session=session_id, status__in=Turn.OPEN_STATUSES)
        locked_turn_count = open_turns.lock()
        try:
            session = Session.objects.lock(session_id)
        except Session.DoesNotExist:
            return True
        # A turn that began between the two locks is not locked. Its writer may already hold the
        # turn and wait for the session, so closing the turn now would make both wait forever.
        # Leaving the transaction releases the locks; the next attempt locks that turn first.
        if open_turns.count() != locked_turn_count:
            return False
        if check:
            check(session)
        # Who waits for the answer must find no session, not a cancelled turn, so generating is
        # stopped only when the session is hidden. Another process notices that the turn is over.
        for turn_id in open_turns.values_list("pk", flat=True):
            transaction.on_commit(partial(turn_runner.cancel, turn_id))
        Message.objects.filter(turn__in=open_turns, status=Message.Status.STREAMING).update(
            status=Message.Status.INTERRUPTED
        )
        open_turns.update(status=Turn.Status.CANCELLED, finished_at=timezone.now())
        # The client's own name is free again.
        session.external_id = None
        now = read_clock()
        session.discard_at = now + grace
        session.expired_at = now if grace else None
        session.save(update_fields=["external_id", "discard_at", "expired_at"])
        return True

"""Delete sessions that nobody has used for as long as the operator keeps them."""

from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from chatcore.models import Hold, Session, SessionQuerySet
from chatcore.row_by_row import try_each
from chatcore.sessions.deletion import delete_session

BATCH_SIZE = 500  # sessions of one call; the next call goes on


def delete_unused_sessions() -> int:
    """Delete sessions that are over by CHATCORE's settings; return how many.

    Any session is after SESSION_RETENTION_DAYS without use (0: never), a temporary one after
    TEMPORARY_HOURS. Those of users on hold stay, and a session in which an answer runs was used
    just now.
    """
    hours = settings.CHATCORE["TEMPORARY_HOURS"]
    temporary_sessions = Session.objects.filter(temporary=True)
    count = _delete_since(temporary_sessions, timedelta(hours=hours), is_temporary=True)
    days = settings.CHATCORE["SESSION_RETENTION_DAYS"]
    if days:
        count += _delete_since(Session.objects.all(), timedelta(days=days))
    return count


def _delete_since(sessions: SessionQuerySet, age: timedelta, *, is_temporary: bool = False) -> int:
    """Delete those of the sessions that nobody has used for so long."""
    cutoff = timezone.now() - age
    held_users = Hold.objects.filter_active().values("user")
    unused_sessions = sessions.filter(updated_at__lt=cutoff).exclude(owner__in=held_users)
    session_ids = list(unused_sessions.order_by().values_list("pk", flat=True)[:BATCH_SIZE])
    check = partial(_refuse_if_used, cutoff, is_temporary)

    def delete(session_id: UUID) -> bool:
        try:
            delete_session(session_id, check=check)
        except _UsedAgain:
            return False
        return True

    return sum(try_each(session_ids, delete, what="delete the unused session"))


class _UsedAgain(Exception):
    """Somebody has used the session meanwhile, or keeps it."""


def _refuse_if_used(cutoff: datetime, is_temporary: bool, session: Session) -> None:
    if session.updated_at >= cutoff or (is_temporary and not session.temporary):
        raise _UsedAgain

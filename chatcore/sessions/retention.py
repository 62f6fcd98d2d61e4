"""Delete sessions that nobody has used for as long as the operator keeps them."""

from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from chatcore.models import Hold, Session
from chatcore.row_by_row import try_each
from chatcore.sessions.deletion import delete_session

BATCH_SIZE = 500  # sessions of one call; the next call goes on


def delete_unused_sessions() -> int:
    """Delete sessions not used for CHATCORE["SESSION_RETENTION_DAYS"]; return how many.

    0 days keep them for good. Those of users on hold stay, and a session in which an answer runs
    was used just now.
    """
    days = settings.CHATCORE["SESSION_RETENTION_DAYS"]
    if not days:
        return 0
    cutoff = timezone.now() - timedelta(days=days)
    held_users = Hold.objects.filter_active().values("user")
    unused_sessions = Session.objects.filter(updated_at__lt=cutoff).exclude(owner__in=held_users)
    session_ids = list(unused_sessions.order_by().values_list("pk", flat=True)[:BATCH_SIZE])

    def delete(session_id: UUID) -> bool:
        try:
            delete_session(session_id, check=partial(_refuse_if_used, cutoff))
        except _UsedAgain:
            return False
        return True

    return sum(try_each(session_ids, delete, what="delete the unused session"))


class _UsedAgain(Exception):
    """Somebody has used the session meanwhile."""


def _refuse_if_used(cutoff: datetime, session: Session) -> None:
    if session.updated_at >= cutoff:
        raise _UsedAgain

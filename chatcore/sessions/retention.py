"""Delete sessions that nobody has used for as long as the operator keeps them."""

from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.apps import apps
from django.conf import settings

from chatcore.base.databases.clock import read_clock
from chatcore.base.paused_deletion import note_problem
from chatcore.base.row_by_row import try_each
from chatcore.extension import exclude_kept, get_extensions
from chatcore.models import Installation, Session, SessionQuerySet
from chatcore.sessions.deletion import NO_GRACE, delete_session

BATCH_SIZE = 500  # sessions of one call; the next call goes on
# A round that would take more than both of these waits until staff confirm it.
LARGE_COUNT = 100
LARGE_SHARE = 0.2
CONFIRMED_FOR = timedelta(days=1)


def delete_unused_sessions() -> int:
    """Delete sessions that are over by CHATCORE's settings; return how many.

    Any session is after SESSION_RETENTION_DAYS without use (0: never), a temporary one after
    TEMPORARY_HOURS. Those of users on hold stay, and a session in which an answer runs was used
    just now. What retention takes is hidden for DELETION_GRACE_DAYS before its rows go.
    """
    hours = settings.CHATCORE["TEMPORARY_HOURS"]
    temporary_sessions = Session.objects.filter(temporary=True)
    count = _delete_since(temporary_sessions, timedelta(hours=hours), is_temporary=True)
    if settings.CHATCORE["SESSION_RETENTION_DAYS"]:
        problem = _find_large_round()
        note_problem("retention", problem)
        if not problem:
            count += _delete_since(
                Session.objects.all(),
                _get_retention(),
                grace=timedelta(days=settings.CHATCORE["DELETION_GRACE_DAYS"]),
            )
    return count


def count_due() -> tuple[int, int]:
    """Return how many sessions retention would take now, and how many there are."""
    if not settings.CHATCORE["SESSION_RETENTION_DAYS"]:
        return 0, Session.objects.count()
    cutoff = read_clock() - _get_retention()
    return _select_unused(Session.objects.all(), cutoff).count(), Session.objects.count()


def confirm_large_round() -> None:
    """Let rounds take a large share of all sessions for CONFIRMED_FOR."""
    Installation.load()
    Installation.objects.filter(pk=1).update(deletion_confirmed_at=read_clock())


def _get_retention() -> timedelta:
    return timedelta(days=settings.CHATCORE["SESSION_RETENTION_DAYS"])


def _find_large_round() -> str:
    """Return why a round has to wait for staff; empty if it need not."""
    due_count, all_count = count_due()
    if due_count <= LARGE_COUNT or due_count <= LARGE_SHARE * all_count:
        return ""
    confirmed_at = Installation.load().deletion_confirmed_at
    if confirmed_at is not None and read_clock() - confirmed_at < CONFIRMED_FOR:
        return ""
    return (
        f"Retention would delete {due_count:,} of {all_count:,} chats, and waits."
        " `chatcore retention --confirm` lets it."
    )


def _select_unused(sessions: SessionQuerySet, cutoff: datetime) -> SessionQuerySet:
    # A chat that was imported keeps its date, which may be years ago; it came here later.
    unused_sessions = sessions.filter(updated_at__lt=cutoff)
    for name in [each.arrivals for each in get_extensions() if each.arrivals]:
        arrivals = apps.get_model(name)._default_manager.filter(created_at__gte=cutoff)
        unused_sessions = unused_sessions.exclude(pk__in=arrivals.values("session"))
    return exclude_kept(unused_sessions, "owner")


def _delete_since(
    sessions: SessionQuerySet,
    age: timedelta,
    *,
    is_temporary: bool = False,
    grace: timedelta = NO_GRACE,
) -> int:
    """Delete those of the sessions that nobody has used for so long."""
    cutoff = read_clock() - age
    unused_sessions = _select_unused(sessions, cutoff)
    session_ids = list(unused_sessions.order_by().values_list("pk", flat=True)[:BATCH_SIZE])
    check = partial(_refuse_if_used, cutoff, is_temporary)

    def delete(session_id: UUID) -> bool:
        try:
            delete_session(session_id, check=check, grace=grace)
        except _UsedAgain:
            return False
        return True

    return sum(try_each(session_ids, delete, what="delete the unused session"))


class _UsedAgain(Exception):
    """Somebody has used the session meanwhile, or keeps it."""


def _refuse_if_used(cutoff: datetime, is_temporary: bool, session: Session) -> None:
    if session.updated_at >= cutoff or (is_temporary and not session.temporary):
        raise _UsedAgain

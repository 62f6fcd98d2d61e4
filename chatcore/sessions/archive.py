"""The archive policy: how many sessions of a user stay listed."""

from django.conf import settings
from django.db import transaction

from chatcore.models import Session


def archive_surplus_sessions(new_session: Session) -> None:
    """Archive the owner's least recently used sessions, beyond CHATCORE["MAX_SESSIONS"].

    The new session and pinned sessions stay listed; 0 archives nothing. Call it after the
    transaction that created the session, because it locks the rows of other sessions.
    """
    max_sessions = settings.CHATCORE.get("MAX_SESSIONS", 0)
    if not max_sessions or new_session.temporary or new_session.parent_id:
        return
    listed_sessions = Session.objects.filter(
        owner_id=new_session.owner_id, archived=False, pinned=False, temporary=False, parent=None
    ).exclude(pk=new_session.pk)
    with transaction.atomic():
        surplus_ids = list(
            listed_sessions.order_by("-updated_at", "-id").values_list("pk", flat=True)[
                max_sessions - 1 :
            ]
        )
        surplus_sessions = Session.objects.filter(pk__in=surplus_ids)
        # An UPDATE locks rows in the order in which it meets them. Two new sessions of one owner
        # archive the same sessions, and in different orders each would wait for the other.
        list(surplus_sessions.select_for_update().order_by("pk").values_list("pk"))
        surplus_sessions.update(archived=True)

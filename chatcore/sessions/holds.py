"""Keep what is on legal hold: deleted sessions stay stored, and messages are not deleted."""

from typing import Any

from chatcore.models import Hold, Session


class OnHold(Exception):
    """Something of a user on legal hold was to be deleted; the text is for the user."""

    def __init__(self) -> None:
        super().__init__("This is kept for legal reasons and cannot be deleted now.")


def refuse_if_held(owner_id: Any) -> None:
    """Raise OnHold if the user is on hold."""
    if Hold.objects.filter_active().filter(user=owner_id).exists():
        raise OnHold


def is_session_held(session_id: Any) -> bool:
    """Return True if the owner of a session, hidden or not, is on hold."""
    owners = Session.all_objects.filter(pk=session_id).values("owner")
    return Hold.objects.filter_active().filter(user__in=owners).exists()

"""Keep what is on legal hold: deleted sessions stay stored, and no words are deleted or changed."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_noop

from chatcore.models import Hold, Session


class OnHold(Exception):
    """Something of a user on legal hold was to be deleted; the text is for the user."""

    def __init__(self) -> None:
        super().__init__(
            gettext_noop("This is kept for legal reasons and cannot be changed or deleted now.")
        )


def refuse_if_held(owner_id: Any) -> None:
    """Raise OnHold if the user is on hold."""
    if Hold.objects.filter_active().filter(user=owner_id).exists():
        raise OnHold


def refuse_lost_words(owner_id: Any, before: Any, after: Mapping[str, Any]) -> None:
    """Raise OnHold if a change of a row of a held user would take words that it has.

    `before` is the row, `after` the new texts or lists of lines by the names of its columns. What
    still has all the words is no loss.
    """
    if any(_loses_words(getattr(before, name), value) for name, value in after.items()):
        refuse_if_held(owner_id)


def refuse_lost_text(owner_id: Any, old: str, new: str) -> None:
    """Raise OnHold if the user is on hold and the new text has not all words of the old one."""
    if _loses_words(old, new):
        refuse_if_held(owner_id)


def _loses_words(old: Any, new: Any) -> bool:
    if isinstance(old, list):
        return any(line not in new for line in old)
    return bool(old) and old not in (new or "")


def is_session_held(session_id: Any) -> bool:
    """Return True if the owner of a session, hidden or not, is on hold."""
    owners = Session.all_objects.filter(pk=session_id).values("owner")
    return Hold.objects.filter_active().filter(user__in=owners).exists()

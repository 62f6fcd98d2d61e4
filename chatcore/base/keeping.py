"""Refuse what would delete or change words that have to be kept, as an app says."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.utils.translation import gettext_noop

from chatcore.extension import Refusal, list_kept_owners


class Kept(Refusal):
    """Something of a user was to be deleted that has to be kept; the text is for the user."""

    status = 409
    type = "on_hold"

    def __init__(self) -> None:
        super().__init__(
            gettext_noop("This is kept for legal reasons and cannot be changed or deleted now.")
        )


def refuse_if_kept(owner_id: object) -> None:
    """Raise Kept if nothing of the user may be deleted."""
    if is_kept(owner_id):
        raise Kept


def is_kept(owner_id: Any) -> bool:
    """Return True if nothing of the user may be deleted."""
    users = get_user_model()._default_manager.filter(pk=owner_id)
    return any(users.filter(pk__in=owners).exists() for owners in list_kept_owners())


def refuse_lost_words(owner_id: object, before: object, after: Mapping[str, object]) -> None:
    """Raise Kept if a change of a row of such a user would take words that it has.

    `before` is the row, `after` the new texts or lists of lines by the names of its columns. What
    still has all the words is no loss.
    """
    if any(_loses_words(getattr(before, name), value) for name, value in after.items()):
        refuse_if_kept(owner_id)


def refuse_lost_text(owner_id: object, old: str, new: str) -> None:
    """Raise Kept if everything of the user is kept, and the new text lacks words of the old one."""
    if _loses_words(old, new):
        refuse_if_kept(owner_id)


def _loses_words(old: Any, new: Any) -> bool:
    if isinstance(old, list):
        return any(line not in new for line in old)
    return bool(old) and old not in (new or "")

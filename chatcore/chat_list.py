"""The list of a user's chats, by day, as the side of every page shows it."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from chatcore.models import Session

PAGE_SIZE = 40  # chats


@dataclass(frozen=True, kw_only=True)
class Group:
    """Chats of one stretch of days."""

    label: str | Promise
    chats: list[Session]


@dataclass(frozen=True, kw_only=True)
class ChatList:
    """A page of the list; `after` asks for the next one, None at its end."""

    groups: list[Group]
    after: str | None
    query: str = ""


def chat_list(user: Any, *, query: str = "", after: str = "") -> ChatList:
    """The user's chats, the last touched first, from the place that `after` names; `query` is looked for in their titles."""
    rows = Session.objects.owned_by(user).filter(archived=False)
    if query:
        rows = rows.filter(title__icontains=query)
    if place := _place(after):
        rows = rows.filter(Q(updated_at__lt=place[0]) | Q(updated_at=place[0], id__lt=place[1]))
    chats = list(rows.order_by("-updated_at", "-id")[: PAGE_SIZE + 1])
    more = len(chats) > PAGE_SIZE
    chats = chats[:PAGE_SIZE]
    return ChatList(
        groups=_grouped(chats, repeated=_label(place[0]) if place else None),
        after=f"{chats[-1].updated_at.isoformat()}_{chats[-1].id}" if more else None,
        query=query,
    )


def _place(after: str) -> tuple[datetime, UUID] | None:
    moment, _underscore, identity = after.partition("_")
    try:
        at = parse_datetime(moment)
        return (at, UUID(identity)) if at and timezone.is_aware(at) else None
    except ValueError:
        return None


def _grouped(chats: list[Session], *, repeated: str | Promise | None) -> list[Group]:
    """Consecutive chats under their labels; a label that the page before ended with is not said again."""
    groups: list[Group] = []
    label: str | Promise = repeated or ""
    for chat in chats:
        if not groups or _label(chat.updated_at) != label:
            new = _label(chat.updated_at)
            groups.append(Group(label="" if new == label else new, chats=[]))
            label = new
        groups[-1].chats.append(chat)
    return groups


def _label(moment: datetime) -> str | Promise:
    today: date = timezone.localdate()
    day = timezone.localdate(moment)
    if day >= today:
        return _("Today")
    if day == today - timedelta(days=1):
        return _("Yesterday")
    if day > today - timedelta(days=8):
        return _("Previous 7 days")
    return _("Older")

"""The list of a user's chats, the pinned first, then by day and month, as the side of every page shows it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from chatcore.models import Session

PAGE_SIZE = 40  # chats
MAX_PINNED = 100


@dataclass(frozen=True, kw_only=True)
class Group:
    """Chats of one stretch of days."""

    label: str | Promise
    chats: list[Session]
    pinned: bool = False


@dataclass(frozen=True, kw_only=True)
class ChatList:
    """A page of the list; `after` asks for the next one, None at its end."""

    groups: list[Group]
    after: str | None
    query: str = ""
    archived: bool = False


def chat_list(user: Any, *, query: str = "", after: str = "", archived: bool = False) -> ChatList:
    """The user's chats, the pinned first, then the last touched, from the place that `after` names.

    `query` is looked for in their titles; `archived` lists those that were put away instead of the others.
    """
    rows = Session.objects.owned_by(user).filter(archived=archived).order_by("-updated_at", "-id")
    if query:
        rows = rows.filter(title__icontains=query)
    place = _place(after)
    pinned = [] if place else list(rows.filter(pinned=True)[:MAX_PINNED])
    if place:
        rows = rows.filter(Q(updated_at__lt=place[0]) | Q(updated_at=place[0], id__lt=place[1]))
    chats = list(rows.filter(pinned=False)[: PAGE_SIZE + 1])
    more = len(chats) > PAGE_SIZE
    chats = chats[:PAGE_SIZE]
    return ChatList(
        groups=[
            *([Group(label=_("Pinned"), chats=pinned, pinned=True)] if pinned else []),
            *_grouped(chats, repeated=_label(place[0]) if place else None),
        ],
        after=f"{chats[-1].updated_at.isoformat()}_{chats[-1].id}" if more else None,
        query=query,
        archived=archived,
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
    today, day = timezone.localdate(), timezone.localdate(moment)
    if day >= today:
        return _("Today")
    if day == today - timedelta(days=1):
        return _("Yesterday")
    if day > today - timedelta(days=8):
        return _("Last 7 days")
    return date_format(day, "YEAR_MONTH_FORMAT")

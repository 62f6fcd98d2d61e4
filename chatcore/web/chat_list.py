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
class ChatGroup:
    """Chats of one stretch of days."""

    label: str | Promise
    chats: list[Session]
    pinned: bool = False


@dataclass(frozen=True, kw_only=True)
class ChatList:
    """A page of the list; `after` asks for the next one, None at its end."""

    groups: list[ChatGroup]
    after: str | None
    query: str = ""
    archived: bool = False


def load_chat_list(
    user: Any, *, query: str = "", after: str = "", archived: bool = False
) -> ChatList:
    """The user's chats, the pinned first, then the last touched, from the place that `after` names.

    `query` is looked for in their titles; `archived` lists those that were put away instead of the others.
    """
    rows = Session.objects.list_for(user, archived=archived)
    if query:
        rows = rows.filter(title__icontains=query)
    position = _parse_position(after)
    pinned_chats = [] if position else list(rows.filter(pinned=True)[:MAX_PINNED])
    if position:
        rows = rows.filter(
            Q(updated_at__lt=position[0]) | Q(updated_at=position[0], id__lt=position[1])
        )
    chats = list(rows.filter(pinned=False)[: PAGE_SIZE + 1])
    has_more = len(chats) > PAGE_SIZE
    chats = chats[:PAGE_SIZE]
    return ChatList(
        groups=[
            *(
                [ChatGroup(label=_("Pinned"), chats=pinned_chats, pinned=True)]
                if pinned_chats
                else []
            ),
            *_group_by_day(
                chats, previous_label=_format_day_label(position[0]) if position else None
            ),
        ],
        after=f"{chats[-1].updated_at.isoformat()}_{chats[-1].id}" if has_more else None,
        query=query,
        archived=archived,
    )


def _parse_position(cursor: str) -> tuple[datetime, UUID] | None:
    timestamp_text, _underscore, id_text = cursor.partition("_")
    try:
        updated_at = parse_datetime(timestamp_text)
        return (updated_at, UUID(id_text)) if updated_at and timezone.is_aware(updated_at) else None
    except ValueError:
        return None


def _group_by_day(chats: list[Session], *, previous_label: str | Promise | None) -> list[ChatGroup]:
    """Consecutive chats under their labels; a label that the page before ended with is not said again."""
    groups: list[ChatGroup] = []
    label: str | Promise = previous_label or ""
    for chat in chats:
        if not groups or _format_day_label(chat.updated_at) != label:
            new_label = _format_day_label(chat.updated_at)
            groups.append(ChatGroup(label="" if new_label == label else new_label, chats=[]))
            label = new_label
        groups[-1].chats.append(chat)
    return groups


def _format_day_label(updated_at: datetime) -> str | Promise:
    today, day = timezone.localdate(), timezone.localdate(updated_at)
    if day >= today:
        return _("Today")
    if day == today - timedelta(days=1):
        return _("Yesterday")
    if day > today - timedelta(days=8):
        return _("Last 7 days")
    return date_format(day, "YEAR_MONTH_FORMAT")

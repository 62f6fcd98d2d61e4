"""The list of a user's chats in the sidebar: pinned chats first, then grouped by day and month.

And what a user does with a chat there: rename, pin and archive it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.decorators import method_decorator
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views import View
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from chatcore.base.actors import Person
from chatcore.base.keeping import Kept
from chatcore.models import Project, Session, Turn
from chatcore.sessions.changes import record_session_change
from chatcore.web.forms import RenameForm, SwitchForm
from chatcore.web.own_chat import get_own_chat

PAGE_SIZE = 25  # chats: more than a window shows, and each is markup in every page
MAX_PINNED = 100
MAX_PROJECTS = 12  # in the sidebar


@dataclass(frozen=True, kw_only=True)
class ChatGroup:
    """Chats of the same day, week or month, under one label."""

    label: str | Promise
    chats: list[Session]
    pinned: bool = False


@dataclass(frozen=True, kw_only=True)
class ChatList:
    """A page of the list. `after` is the cursor of the next page, None on the last one.

    `projects` are those that stand above it in the sidebar.
    """

    groups: list[ChatGroup]
    after: str | None
    query: str = ""
    archived: bool = False
    projects: Sequence[Project] = ()
    has_more_projects: bool = False


def load_sidebar(user: Person) -> ChatList:
    """Load what the sidebar of a page shows: the first page of the list, and the projects."""
    projects = list(
        Project.objects.owned_by(user).defer("instructions", "rules")[: MAX_PROJECTS + 1]
    )
    return replace(
        load_chat_list(user),
        projects=projects[:MAX_PROJECTS],
        has_more_projects=len(projects) > MAX_PROJECTS,
    )


def load_chat_list(
    user: Person, *, query: str = "", after: str = "", archived: bool = False
) -> ChatList:
    """Load the page of the user's chats that begins after the cursor `after`.

    Pinned chats come first and only on the first page; the others follow, those used last first.
    `query` selects by words in the title, `archived` the archived chats instead of the others.
    """
    rows = Session.objects.list_for(user, archived=archived)
    if query:
        rows = rows.filter(title__icontains=query)
    position = _parse_position(after)
    groups: list[ChatGroup] = []
    previous_label: str | Promise | None = None
    if position:
        # Continue after a row instead of at an offset: chats move while the user scrolls, and an
        # offset would then repeat or skip some.
        updated_at, pk = position
        rows = rows.filter(Q(updated_at__lt=updated_at) | Q(updated_at=updated_at, id__lt=pk))
        previous_label = _format_day_label(updated_at)
    else:
        pinned_chats = list(rows.filter(pinned=True)[:MAX_PINNED])
        if pinned_chats:
            groups.append(ChatGroup(label=_("Pinned"), chats=pinned_chats, pinned=True))
    # One more than a page shows whether there is a next page, without a second query.
    chats = list(rows.filter(pinned=False)[: PAGE_SIZE + 1])
    has_more = len(chats) > PAGE_SIZE
    chats = chats[:PAGE_SIZE]
    _note_open_turns([*chats, *(chat for group in groups for chat in group.chats)])
    groups += _group_by_day(chats, previous_label=previous_label)
    return ChatList(
        groups=groups,
        after=_format_position(chats[-1]) if has_more else None,
        query=query,
        archived=archived,
    )


def _note_open_turns(chats: Sequence[Session]) -> None:
    """Set `turn_status` of each chat: that of its open turn, or nothing."""
    open_turns = Turn.objects.filter(session__in=chats, status__in=Turn.OPEN_STATUSES)
    statuses = dict(open_turns.values_list("session_id", "status"))
    for chat in chats:
        chat.turn_status = statuses.get(chat.pk, "")  # type: ignore[attr-defined]


def _format_position(chat: Session) -> str:
    return f"{chat.updated_at.isoformat()}_{chat.id}"


def _parse_position(cursor: str) -> tuple[datetime, UUID] | None:
    timestamp_text, _underscore, id_text = cursor.partition("_")
    try:
        updated_at = parse_datetime(timestamp_text)
        pk = UUID(id_text)
    except ValueError:
        return None
    if updated_at is None or timezone.is_naive(updated_at):
        return None
    # At the first and the last day of the calendar, other time zones are beyond it.
    if not datetime.min.year < updated_at.year < datetime.max.year:
        return None
    return updated_at, pk


def _group_by_day(chats: list[Session], *, previous_label: str | Promise | None) -> list[ChatGroup]:
    """Group consecutive chats by label.

    The label is empty if it is the last one of the page before: there it stands already.
    """
    groups: list[ChatGroup] = []
    last_label: str | Promise = previous_label or ""
    for chat in chats:
        label = _format_day_label(chat.updated_at)
        if label != last_label:
            groups.append(ChatGroup(label=label, chats=[]))
        elif not groups:
            groups.append(ChatGroup(label="", chats=[]))
        groups[-1].chats.append(chat)
        last_label = label
    return groups


def _format_day_label(updated_at: datetime) -> str | Promise:
    today = timezone.localdate()
    day = timezone.localdate(updated_at)
    if day >= today:
        return _("Today")
    if day == today - timedelta(days=1):
        return _("Yesterday")
    if day > today - timedelta(days=8):
        return _("Last 7 days")
    return date_format(day, "YEAR_MONTH_FORMAT")


@method_decorator(login_required, name="dispatch")
class RenameChatView(View):
    """The title of a chat, edited in its row of the list."""

    def get(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """Show the field for the title, or the row again if the user cancels."""
        template = (
            "chatcore/_chat_row.html"
            if "cancel" in request.GET
            else "chatcore/_chat_rename_form.html"
        )
        return render(request, template, {"chat": get_own_chat(request, pk)})

    def post(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """Store the title and show the row again."""
        session = get_own_chat(request, pk)
        form = RenameForm(request.POST)
        if form.is_valid():
            session.title = form.cleaned_data["title"]
            try:
                record_session_change(pk, {"title": session.title}, is_user_act=False)
            except Kept as refusal:
                text = gettext(str(refusal))
                return HttpResponse(text, status=409, content_type="text/plain; charset=utf-8")
        return render(request, "chatcore/_chat_row.html", {"chat": session})


@login_required
@require_POST
def pin_chat(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Pin a chat to the top of the list, or unpin it."""
    return _set_flag(request, pk, "pinned")


@login_required
@require_POST
def archive_chat(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Archive a chat, or list it again."""
    return _set_flag(request, pk, "archived")


def _set_flag(request: HttpRequest, pk: UUID, field: str) -> HttpResponse:
    """Set a flag of the chat; the page shows it in the chat's head and in its list."""
    get_own_chat(request, pk)
    form = SwitchForm(request.POST)
    if not form.is_valid():
        return HttpResponse(status=400)
    # The conversation did not change: the chat keeps its place in the list, which is by time.
    is_on = form.cleaned_data["on"]
    record_session_change(pk, {field: is_on}, is_user_act=False)
    change = {"chat": str(pk), "flag": field, "isOn": is_on}
    return trigger_client_event(HttpResponse(), "chat-flagged", change)

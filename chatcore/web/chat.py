"""The chat's pages and the pieces of them that htmx asks for: each the owner's rows only."""

from collections.abc import Callable
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET
from django_htmx.http import HttpResponseClientRefresh

from chatcore.local_model.state import load_local_model_state as local_model_state
from chatcore.models import Message, Session, Turn
from chatcore.sessions.truncation import clean_text
from chatcore.web import message_pages, timeline
from chatcore.web.chat_list import load_chat_list
from models_registry.models import AiModel


def get_own_chat(request: HttpRequest, pk: UUID) -> Session:
    """The chat, if it is the asker's; else there is none."""
    return get_object_or_404(
        Session.objects.owned_by(request.user).select_related("model__provider"), pk=pk
    )


def use_local_time(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Days and hours as the browser's clock has them: its zone comes in a cookie."""

    def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            zone = ZoneInfo(request.COOKIES.get("tz", "UTC"))
        except (KeyError, ValueError, OSError):
            zone = ZoneInfo("UTC")
        with timezone.override(zone):
            return view(request, *args, **kwargs)

    return wrapper


@login_required
@require_GET
def redirect_to_chat(request: HttpRequest) -> HttpResponse:
    """The newest chat, or a new one."""
    newest_chat = Session.objects.list_for(request.user, archived=False).first()
    return redirect("chat", newest_chat.pk) if newest_chat else redirect("new_chat")


@login_required
@require_GET
@use_local_time
def show_new_chat(request: HttpRequest) -> HttpResponse:
    """An empty chat; it is stored when its first message is sent."""
    models = AiModel.objects.filter_usable().order_by("provider__name", "name")
    context = {
        "chats": load_chat_list(request.user),
        "models": models,
        "chosen": AiModel.objects.find_default(),
        "local": local_model_state(),
    }
    return render(request, "chatcore/chat.html", context)


@login_required
@require_GET
def show_onboarding(request: HttpRequest) -> HttpResponse:
    """What to do while there is no language model, and how far the embedded one is; the page is drawn anew when there is one."""
    if AiModel.objects.filter_usable().exists():
        return HttpResponseClientRefresh()
    return render(request, "chatcore/_onboarding.html", {"local": local_model_state()})


@login_required
@require_GET
@use_local_time
def show_chat(request: HttpRequest, pk: UUID) -> HttpResponse:
    """A chat with its newest messages, or those around `at`; the page then follows the events after `follow`."""
    session = get_own_chat(request, pk)
    running_turn = session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    # Read before the messages, so that nothing falls between them; an answer being written is replayed from its turn's beginning.
    follow_seq = (
        max(0, min(session.last_event_seq, running_turn.first_event_seq - 1))
        if running_turn
        else session.last_event_seq
    )
    context = {
        "session": session,
        "running": running_turn,
        "follow": follow_seq,
        "message_page": message_pages.load_requested_page(
            session, {"at": request.GET.get("at", "")}
        ),
        "chats": load_chat_list(request.user),
        "models": AiModel.objects.filter_usable().order_by("provider__name", "name"),
        "chosen": session.model,
    }
    return render(request, "chatcore/chat.html", context)


@login_required
@require_GET
@use_local_time
def show_messages(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Another stretch of the chat, or the same one as it is now: versions, edits and deletions of other tabs."""
    session = get_own_chat(request, pk)
    page = message_pages.load_requested_page(session, request.GET.dict())
    return render(request, "chatcore/_messages.html", {"session": session, "message_page": page})


@login_required
@require_GET
@use_local_time
def show_message(request: HttpRequest, pk: UUID, message_pk: int) -> HttpResponse:
    """One message as the page would have shown it; a tool's result alone."""
    session = get_own_chat(request, pk)
    message = get_object_or_404(session.messages.select_related("turn"), pk=message_pk)
    if message.role == Message.Role.TOOL:
        return render(
            request, "chatcore/_tool_result.html", {"result": timeline.prefetch_files([message])[0]}
        )
    return render(
        request,
        "chatcore/_message.html",
        {"session": session, "entry": timeline.build_entries(session, [message])[0]},
    )


@login_required
@require_GET
def show_turn_error(request: HttpRequest, pk: UUID, turn_pk: UUID) -> HttpResponse:
    """Why a turn failed, as the page says it."""
    turn = get_object_or_404(
        Turn, pk=turn_pk, session=get_own_chat(request, pk), error__isnull=False
    )
    return render(request, "chatcore/_turn_error.html", {"turn": turn})


@login_required
@require_GET
@use_local_time
def show_chat_list(request: HttpRequest) -> HttpResponse:
    """The list at the side: searched, continued, of what was put away, or simply fresh."""
    query = clean_text(request.GET.get("q", "")).strip()
    page = load_chat_list(
        request.user,
        query=query,
        after=request.GET.get("after", ""),
        archived="archived" in request.GET,
    )
    return render(request, "chatcore/_chat_list.html", {"chats": page})

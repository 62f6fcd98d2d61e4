"""The pages of a chat, and the parts of them that htmx loads. A user sees only own chats."""

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET
from django_htmx.http import HttpResponseClientRefresh

from chatcore.accounts.rights import find_default_model, has_usable_models, select_models
from chatcore.base.truncation import clean_text
from chatcore.extension import Place, build_page_parts
from chatcore.models import Message, Session, Turn
from chatcore.web import message_pages, timeline
from chatcore.web.chat_list import load_chat_list, load_sidebar
from chatcore.web.context_state import describe_context
from chatcore.web.own_chat import get_own_chat, use_local_time
from chatcore.web.projects.chats import choose_project, describe_project
from chatcore.web.titles.writing import writes_titles

MAX_SUBAGENTS = 100  # on a page


@login_required
@require_GET
def redirect_to_chat(request: HttpRequest) -> HttpResponse:
    """Redirect to the newest chat, or to a new one."""
    newest_chat = Session.objects.list_for(request.user, archived=False).first()
    if newest_chat is None:
        return redirect("new_chat")
    return redirect("chat", newest_chat.pk)


@login_required
@require_GET
@use_local_time
def show_new_chat(request: HttpRequest) -> HttpResponse:
    """Show an empty chat, which is stored when its first message is sent."""
    default_model = find_default_model(request.user.pk)
    context = {
        "temporary_hours": settings.CHATCORE["TEMPORARY_HOURS"],
        "chats": load_sidebar(request.user),
        **_build_model_context(request),
        "chosen_model": default_model,
        "of_project": describe_project(choose_project(request), default_model),
        "writes_titles": writes_titles(),
        **_build_first_model_parts(request),
    }
    return render(request, "chatcore/chat.html", context)


@login_required
@require_GET
def show_onboarding(request: HttpRequest) -> HttpResponse:
    """Show what to do without a language model; reload the page as soon as there is one."""
    if select_models(request.user.pk).filter_usable().exists():
        return HttpResponseClientRefresh()
    return render(
        request,
        "chatcore/_onboarding.html",
        {**_build_first_model_parts(request), "are_models_barred": has_usable_models},
    )


def _build_first_model_parts(request: HttpRequest) -> dict[str, object]:
    """Return what apps show while there is no language model."""
    places: tuple[Place, ...] = ("first_model", "first_model_ways")
    return {place: build_page_parts(place, request) for place in places}


@login_required
@require_GET
@use_local_time
def show_chat(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show a chat with its newest messages, or with those around the parameter `at`.

    The page then follows the events after `follow`.
    """
    session = get_own_chat(request, pk)
    running_turn = session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    # This number is read before the messages. An event in between is then received although its
    # message is on the page already, which is harmless; the other order would lose it.
    follow_seq = session.last_event_seq
    if running_turn:
        # The answer in progress is not stored yet, so its turn is replayed from the beginning.
        follow_seq = max(0, min(follow_seq, running_turn.first_event_seq - 1))
    context = {
        "session": session,
        "running": running_turn,
        "follow": follow_seq,
        "message_page": message_pages.load_requested_page(
            session, {"at": request.GET.get("at", "")}
        ),
        "chats": load_sidebar(request.user),
        **_build_model_context(request),
        "chosen_model": session.model,
        "of_project": describe_project(session.project, session.model),
        "subagents": _load_subagents(session),
        **describe_context(session),
    }
    return render(request, "chatcore/chat.html", context)


def _load_subagents(session: Session) -> Sequence[Session]:
    """Return the newest sessions of subagents below this one."""
    if session.external_id is None:  # only programs have them, and programs name what they begin
        return []
    subagents = session.subagents.order_by("-created_at").only("title")
    return list(subagents[:MAX_SUBAGENTS])


@login_required
@require_GET
@use_local_time
def show_messages(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show another page of the chat's messages, or the same one with what other tabs changed."""
    session = get_own_chat(request, pk)
    page = message_pages.load_requested_page(session, request.GET.dict())
    return render(request, "chatcore/_messages.html", {"session": session, "message_page": page})


@login_required
@require_GET
@use_local_time
def show_message(request: HttpRequest, pk: UUID, message_pk: int) -> HttpResponse:
    """Show one message as it is on the page; of a tool message only the result."""
    session = get_own_chat(request, pk)
    message = get_object_or_404(session.messages.select_related("turn"), pk=message_pk)
    if message.role == Message.Role.TOOL:
        [result] = timeline.prefetch_files([message])
        return render(request, "chatcore/_tool_result.html", {"result": result})
    [entry] = timeline.build_entries(session, [message])
    return render(request, "chatcore/_message.html", {"session": session, "entry": entry})


@login_required
@require_GET
def show_turn_error(request: HttpRequest, pk: UUID, turn_pk: UUID) -> HttpResponse:
    """Show why a turn failed."""
    turn = get_object_or_404(
        Turn, pk=turn_pk, session=get_own_chat(request, pk), error__isnull=False
    )
    return render(request, "chatcore/_turn_error.html", {"turn": turn})


@login_required
@require_GET
@use_local_time
def show_chat_list(request: HttpRequest) -> HttpResponse:
    """Show a page of the list of chats: the newest, the next, the matching or the archived ones."""
    query = clean_text(request.GET.get("q", "")).strip()
    page = load_chat_list(
        request.user,
        query=query,
        after=request.GET.get("after", ""),
        archived="archived" in request.GET,
    )
    return render(request, "chatcore/_chat_list.html", {"chats": page})


def _build_model_context(request: HttpRequest) -> dict[str, object]:
    """Return the models that the user may choose from, and how to find out why there are none."""
    models = select_models(request.user.pk).list_usable()
    return {"models": models, "are_models_barred": has_usable_models}

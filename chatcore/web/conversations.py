"""What is done to a chat in the list at the side: a new title, a pin, the archive."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from chatcore.sessions.changes import record_session_change
from chatcore.sessions.truncation import clean_text
from chatcore.web.chat import get_own_chat


@method_decorator(login_required, name="dispatch")
class RenameChatView(View):
    """A chat's title, in its place in the list."""

    def get(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """The field; or the row again, when it was left."""
        template = (
            "chatcore/_chat_row.html"
            if "cancel" in request.GET
            else "chatcore/_chat_rename_form.html"
        )
        return render(request, template, {"chat": get_own_chat(request, pk)})

    def post(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """Store the title, on one line and cut to what fits."""
        session = get_own_chat(request, pk)
        session.title = " ".join(clean_text(request.POST.get("title", "")).split())[:200]
        record_session_change(pk, {"title": session.title}, is_user_act=False)
        return render(request, "chatcore/_chat_row.html", {"chat": session})


@login_required
@require_POST
def pin_chat(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Keep a chat at the top of the list, or no longer."""
    return _set_flag(request, pk, "pinned")


@login_required
@require_POST
def archive_chat(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Put a chat away, or bring it back."""
    return _set_flag(request, pk, "archived")


def _set_flag(request: HttpRequest, pk: UUID, field: str) -> HttpResponse:
    """Set the flag as the form says it. The list comes anew; a chat's place in it by time is left alone."""
    get_own_chat(request, pk)
    record_session_change(pk, {field: request.POST.get("on") == "true"}, is_user_act=False)
    return trigger_client_event(HttpResponse(), "refresh")

"""What a user can do with a chat in the sidebar: rename, pin and archive it."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.views import View
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from chatcore.base.keeping import Kept
from chatcore.sessions.changes import record_session_change
from chatcore.web.forms import RenameForm, SwitchForm
from chatcore.web.own_chat import get_own_chat


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
    """Set a flag of the chat and make the page reload its list."""
    get_own_chat(request, pk)
    form = SwitchForm(request.POST)
    if form.is_valid():
        # No act of the conversation: the chat keeps its place in the list, which is by time.
        record_session_change(pk, {field: form.cleaned_data["on"]}, is_user_act=False)
    return trigger_client_event(HttpResponse(), "refresh")

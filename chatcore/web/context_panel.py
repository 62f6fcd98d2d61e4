"""What the model sees of a chat: messages in a shorter form."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chatcore.context import live_messages
from chatcore.context.live_messages import LiveMessage
from chatcore.web.chat import get_own_chat


@login_required
@require_GET
def show_shortened_messages(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show each shortened message in the form in which it is sent."""
    session = get_own_chat(request, pk)
    kinds = dict(session.context_edits.filter(until_version=None).values_list("message_id", "kind"))
    messages: list[LiveMessage] = []
    if kinds:  # else the live messages, perhaps thousands, need not be loaded
        revision = live_messages.load_active_revision(session)
        messages = live_messages.load_live_messages(session, revision)
    forms = [
        {"form": message, "kind": kinds.get(message.pk, "")}
        for message in messages
        if message.original_text is not None
    ]
    return render(request, "chatcore/_shortened_messages.html", {"forms": forms})

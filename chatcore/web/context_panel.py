"""Pieces of the page about what the model sees: the messages that are sent in another form than they were written."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from chatcore.context import live_messages
from chatcore.models import Session


@login_required
@require_GET
def show_shortened_messages(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Each message that is sent in a shorter form, with that form; cheap where there is none."""
    session = get_object_or_404(
        Session.objects.owned_by(request.user).select_related("model"), pk=pk
    )
    kinds = dict(session.context_edits.filter(until_version=None).values_list("message_id", "kind"))
    messages = (
        live_messages.load_live_messages(session, live_messages.load_active_revision(session))
        if kinds
        else []
    )
    forms = [
        {"form": message, "kind": kinds.get(message.pk, "")}
        for message in messages
        if message.original_text is not None
    ]
    return render(request, "chatcore/_shortened_messages.html", {"forms": forms})

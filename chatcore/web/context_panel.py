"""What the model sees of a chat: messages in a shorter form."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chatcore.web.context_state import describe_context
from chatcore.web.own_chat import get_own_chat


@login_required
@require_GET
def show_context_state(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show what the page needs to know of the context, and each shortened message as it is sent."""
    session = get_own_chat(request, pk)
    return render(request, "chatcore/_context_state.html", describe_context(session))

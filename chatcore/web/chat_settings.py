"""The dialog with the settings of a chat. The page saves them over REST, which checks them."""

import json
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chatcore.context.compactor import get_compactor
from chatcore.models import Session
from chatcore.web.chat import get_own_chat
from chatcore.web.tool_choice import list_tool_groups
from chatcore.web.usage import add_up_chat
from models_registry.models import AiModel


@login_required
@require_GET
def show_chat_settings(request: HttpRequest, pk: UUID | None = None) -> HttpResponse:
    """Show the dialog with the settings of a chat, or with those of a new chat."""
    session = get_own_chat(request, pk) if pk else Session(model=AiModel.objects.find_default())
    return render(
        request,
        "chatcore/_chat_settings.html",
        {"stored": pk, "chat": session, "usage": add_up_chat(session)}
        | _build_form_context(request, session),
    )


def _build_form_context(request: HttpRequest, session: Session) -> dict[str, Any]:
    threshold = session.compact_threshold
    return {
        "tool_groups": list_tool_groups(request.user, session),
        "models": AiModel.objects.list_usable(),
        "policies": sorted(get_compactor().list_policies()),
        "params": json.dumps(session.params),
        "threshold": "" if threshold is None else f"{threshold * 100:g}",
    }

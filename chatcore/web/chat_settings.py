"""The dialog with the settings of a chat. The page saves them over REST, which checks them."""

import json
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chatcore.accounts.rights import select_models, select_policies
from chatcore.context.compactor import get_compactor
from chatcore.extension import build_page_parts
from chatcore.models import Session
from chatcore.web.own_chat import get_own_chat
from chatcore.web.tool_choice import list_tool_groups


@login_required
@require_GET
def show_chat_settings(request: HttpRequest, pk: UUID | None = None) -> HttpResponse:
    """Show the dialog with the settings of a chat, or with those of a new chat."""
    if pk:
        session = get_own_chat(request, pk)
    else:
        session = Session(model=select_models(request.user.pk).find_default())
    context = _build_form_context(request, session) | {
        "stored": pk,
        "chat": session,
        "parts": build_page_parts("chat_settings", request, session),
    }
    return render(request, "chatcore/_chat_settings.html", context)


def _build_form_context(request: HttpRequest, session: Session) -> dict[str, Any]:
    threshold = session.compact_threshold
    return {
        "tool_groups": list_tool_groups(request.user, session),
        "models": select_models(request.user.pk).list_usable(),
        "policies": sorted(select_policies(request.user.pk, get_compactor().list_policies())),
        "usual_policy": get_compactor()
        .choose_policy(session.model.policy if session.model else "")
        .name,
        "params": json.dumps(session.params),
        "threshold": "" if threshold is None else f"{threshold * 100:g}",
    }

"""What the page of a chat knows of its context: it comes with the page, and again after changes."""

import json
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chatcore.context import live_messages
from chatcore.context.history import build_history, load_history
from chatcore.context.live_messages import LiveMessage
from chatcore.models import Session
from chatcore.web.own_chat import get_own_chat


def describe_context(session: Session) -> dict[str, object]:
    """Return what _context_state.html needs: the session, its history, shortened messages."""
    # Of a context that never changed nothing is stored, so nothing is asked for.
    history = load_history(session.pk) if session.context_version else build_history([])
    state = {
        "session": {
            "id": str(session.pk),
            "title": session.title,
            "model": str(session.model) if session.model else None,
            "context_version": session.context_version,
            "compact_boundary_seq": session.compact_boundary_seq,
            "compacted_summary": session.compacted_summary,
        },
        "history": {
            "can_undo": history.undo_version is not None,
            "can_redo": history.redo_version is not None,
            "is_edited": history.is_edited(history.current),
            "previous_summary": history.get_summary(history.undo_version),
        },
    }
    return {
        "context_state": json.dumps(state),
        "has_changes": session.context_version > 0,
        "forms": _list_shortened_forms(session),
    }


def _list_shortened_forms(session: Session) -> list[dict[str, object]]:
    if not session.context_version:
        return []
    kinds = dict(session.context_edits.filter(until_version=None).values_list("message_id", "kind"))
    messages: list[LiveMessage] = []
    if kinds:  # else the live messages, perhaps thousands, need not be loaded
        revision = live_messages.load_active_revision(session)
        messages = live_messages.load_live_messages(session, revision)
    return [
        {"form": message, "kind": kinds.get(message.pk, "")}
        for message in messages
        if message.original_text is not None
    ]


@login_required
@require_GET
def show_context_state(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show what the page needs to know of the context, and each shortened message as it is sent."""
    session = get_own_chat(request, pk)
    return render(request, "chatcore/_context_state.html", describe_context(session))

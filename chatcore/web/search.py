"""Finding a chat by its title or by what was said in it."""

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chatcore.models import Session
from chatcore.search import query as search_query
from chatcore.sessions.truncation import clean_text
from chatcore.web.chat import in_local_time, own_chat

TITLES = 6
HITS = 20
MAX_WORDS = 200  # characters


@dataclass(frozen=True, kw_only=True)
class Found:
    """A message that holds the words; `pieces` are its snippet in order, each with whether it is one of them."""

    chat: Session
    seq: int
    role: str
    pieces: list[tuple[str, bool]]


@login_required
@require_GET
@in_local_time
def search(request: HttpRequest) -> HttpResponse:
    """What the palette lists: chats by title and messages by their words, or of one chat its messages; without words the newest chats."""
    words = " ".join(clean_text(request.GET.get("q", "")).split())[:MAX_WORDS]
    only = _only(request)
    context: dict[str, Any] = {"words": words, "only": only}
    if only is None:
        context["titles"] = _titled(request.user, words)
    if words:
        context["messages"] = _said(only.pk if only else request.user, words)
    return render(request, "chatcore/_found.html", context)


def _only(request: HttpRequest) -> Session | None:
    try:
        return own_chat(request, UUID(request.GET["chat"])) if request.GET.get("chat") else None
    except ValueError:
        return None


def _titled(user: Any, words: str) -> list[Session]:
    chats = Session.objects.owned_by(user)
    chats = chats.filter(title__icontains=words) if words else chats.filter(archived=False)
    return list(chats.order_by("-updated_at", "-id")[:TITLES])


def _said(scope: Any, words: str) -> list[Found]:
    hits = search_query.search(scope, words, HITS)
    chats = Session.objects.in_bulk({hit.session_id for hit in hits})
    return [
        Found(
            chat=chats[hit.session_id],
            seq=hit.seq,
            role=hit.role,
            pieces=_pieces(hit.snippet, words),
        )
        for hit in hits
        if hit.session_id in chats
    ]


def _pieces(snippet: str, words: str) -> list[tuple[str, bool]]:
    """Every second piece of a split at a group is what the group matched."""
    split = re.split(
        "(" + "|".join(map(re.escape, words.split())) + ")", snippet, flags=re.IGNORECASE
    )
    return [(piece, bool(number % 2)) for number, piece in enumerate(split) if piece]

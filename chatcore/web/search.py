"""Search chats by their titles and by their messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chatcore.base.actors import Person
from chatcore.base.truncation import clean_text
from chatcore.models import Session
from chatcore.search import query as search_query
from chatcore.web.own_chat import get_own_chat, use_local_time

MAX_TITLES = 6
MAX_HITS = 20
MAX_SEARCH_CHARS = 200


@dataclass(frozen=True, kw_only=True)
class MessageHit:
    """A message that may answer the question.

    `pieces` is its snippet in pieces, each with whether it is one of the question's words.
    """

    chat: Session
    seq: int
    role: str
    pieces: list[tuple[str, bool]]


@login_required
@require_GET
@use_local_time
def show_search_results(request: HttpRequest) -> HttpResponse:
    """Show chats whose title matches and messages that match, or the messages of one chat.

    Without words, show the newest chats.
    """
    search_text = " ".join(clean_text(request.GET.get("q", "")).split())[:MAX_SEARCH_CHARS]
    chat = _find_chat(request)
    context: dict[str, object] = {"words": search_text, "only": chat}
    if chat is None:
        context["titles"] = _find_chats_by_title(request.user, search_text)
    if search_text:
        context["messages"] = _find_messages(chat.pk if chat else request.user, search_text)
    return render(request, "chatcore/_search_results.html", context)


def _find_chat(request: HttpRequest) -> Session | None:
    try:
        chat_id = UUID(request.GET.get("chat", ""))
    except ValueError:
        return None
    return get_own_chat(request, chat_id)


def _find_chats_by_title(user: Person, search_text: str) -> list[Session]:
    if search_text:
        chats = Session.objects.list_for(user).filter(title__icontains=search_text)
    else:
        chats = Session.objects.list_for(user, archived=False)
    return list(chats[:MAX_TITLES])


def _find_messages(scope: UUID | Person, search_text: str) -> list[MessageHit]:
    hits = search_query.search_messages(scope, search_text, MAX_HITS)
    chats = Session.objects.in_bulk({hit.session_id for hit in hits})
    return [
        MessageHit(
            chat=chats[hit.session_id],
            seq=hit.seq,
            role=hit.role,
            pieces=_split_snippet(hit.snippet, hit.marks),
        )
        for hit in hits
        if hit.session_id in chats  # else it was deleted between the two queries
    ]


def _split_snippet(snippet: str, marks: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Split a snippet at its marks, and say of each piece whether it is marked."""
    pieces = []
    position = 0
    for start, end in marks:
        pieces += [(snippet[position:start], False), (snippet[start:end], True)]
        position = end
    pieces.append((snippet[position:], False))
    return [(piece, is_marked) for piece, is_marked in pieces if piece]

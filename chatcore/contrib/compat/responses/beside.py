"""Requests that ask for something beside a conversation: a title, a summary.

Nothing of them is stored. The summary that a program without a name asks for is noted, because the
program goes on with a history that begins with it.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from django.contrib.auth.models import User

from chatcore.contrib.compat import summary_notes
from chatcore.contrib.compat.chat_completions.memory import find_session
from chatcore.contrib.compat.chat_completions.side_calls import (
    asks_beside,
    is_side_call,
    is_summary_call,
    may_ask_by_system,
)
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.programs import ThreadName
from chatcore.contrib.compat.responses import history, records
from chatcore.contrib.compat.responses.request import ResponseRequest
from chatcore.contrib.compat.rewritten_histories import find_rewritten
from chatcore.models import Session
from chatcore.providers.base import StreamPart

MAX_RESPONSES = 64  # the newest ones, whose conversations a quote may be of


def set_apart(user: User, request: ResponseRequest) -> ResponseRequest:
    """Return a request that asks for something beside a conversation as one that is not stored.

    A client that names no conversation may have it stored by an explicit `store`.
    """
    if request.conversation_id or request.is_background or request.input.has_trigger:
        return request
    if not request.thread.name and (request.has_store and request.is_stored):
        return request
    if not _is_beside(user, request):
        return request
    is_unnamed = not request.thread.name and request.keeping.is_on
    is_summary = is_unnamed and (is_summary_call(request) or may_ask_by_system(request))
    return replace(
        request,
        echo=request.echo | {"store": False},
        thread=ThreadName(),
        beside=request.thread.name,
        is_summary=is_summary,
    )


def find_asked_session(user: User, request: ResponseRequest) -> Session | None:
    """Return the session beside whose conversation a request asks something."""
    if request.beside or not request.keeping.is_on:
        return find_session(user, request.beside)
    if request.previous_response_id:
        record = records.find_owned_response(user, request.previous_response_id)
        return record.session if record else None
    messages = history.drop_server_calls(request.messages, request.input.server_call_ids)
    known = history.find_known_history(user, messages, seed=request.history_seed)
    return known.record.session if known else None


def remember_summary(
    user: User, request: ResponseRequest, parts: AsyncGenerator[StreamPart]
) -> AsyncGenerator[StreamPart]:
    """Yield the parts of an answer, and note it at its end if it is the summary of a program."""
    if not request.is_summary:
        return parts
    client = summary_notes.hash_client(user.pk, request.keeping)
    return summary_notes.remember_summary(client, parts, lambda: _find_sessions(user, request))


def find_summarized(
    user: User, request: ResponseRequest, messages: Sequence[ClientMessage]
) -> tuple[Session, int] | None:
    """Return the session of a history that begins with a program's summary, and its length.

    The length is a number of messages.
    """
    if len(messages) < 2 or not request.keeping.is_on:
        return None
    client = summary_notes.hash_client(user.pk, request.keeping)
    summary = summary_notes.find_summarized(client, messages)
    if summary is None:
        return find_rewritten(_load_sessions(client), messages)
    sessions = Session.objects.owned_by(user).select_related("model__provider")
    session = sessions.filter(pk=summary.session_id).first()
    return (session, summary.length) if session else None


def _is_beside(user: User, request: ResponseRequest) -> bool:
    """Return True for what programs ask beside a conversation.

    A title that a client asks for without a name, or behind an earlier response, is stored like
    every response.
    """
    thread = request.thread
    if thread.is_beside or asks_beside(thread.program, request.messages):
        return True
    if request.previous_response_id:
        return False
    if thread.name:
        return is_side_call(request, lambda: find_session(user, thread.name))
    if is_summary_call(request):
        return True
    if not (may_ask_by_system(request) and request.keeping.is_on):
        return False
    sessions = _find_sessions(user, request)
    return bool(sessions) and sessions[0].system_prompt != request.system


def _find_sessions(user: User, request: ResponseRequest) -> list[Session]:
    """Return the sessions that a summary may be about, the most recently used one first."""
    session = find_asked_session(user, request)
    if session:
        return [session]
    sessions = _load_sessions(summary_notes.hash_client(user.pk, request.keeping))
    return summary_notes.choose_quoted(sessions, request.messages)


def _load_sessions(client: str) -> list[Session]:
    """Return the sessions of a client that names none, the most recently used one first."""
    rows = StoredResponse.objects.filter(client=client, session__discard_at=None)
    rows = rows.select_related("session__model__provider").order_by("-created_at")[:MAX_RESPONSES]
    sessions = {row.session_id: row.session for row in rows}
    return list(sessions.values())[: summary_notes.MAX_SESSIONS]

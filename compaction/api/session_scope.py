"""What all views of one session share: who may see it, and what happens if it disappears."""

from typing import Any
from uuid import UUID

from django.http import Http404
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from compaction.sessions.facts import list_session_ids, load_session_facts
from compaction.sessions.session_context import NoSuchSession, SessionContext, load_session_context


class SessionScopedView(GenericAPIView[Any]):
    """A view of one session. It answers 404 if the session is deleted while the request runs."""

    def handle_exception(self, exc: Exception) -> Response:
        """Return the problem for an exception, 404 for NoSuchSession."""
        return super().handle_exception(Http404() if isinstance(exc, NoSuchSession) else exc)


def get_owned_session_id(request: Request, session_id: UUID) -> UUID:
    """Return the session's id if the session is the user's. Raises Http404."""
    own_ids = list_session_ids(request.user)
    if not own_ids.filter(pk=session_id).exists():
        raise Http404
    return session_id


def load_owned_context(request: Request, session_id: UUID) -> SessionContext:
    """Return the context of the user's session. Raises Http404 and NoSuchSession."""
    context = load_session_context(get_owned_session_id(request, session_id))
    if context is None:
        raise NoSuchSession(str(session_id))
    return context


def load_context_version(session_id: UUID) -> int:
    """Return the current version of the session's context. Raises NoSuchSession."""
    facts = load_session_facts(session_id)
    if facts is None:
        raise NoSuchSession(str(session_id))
    return facts.live.version

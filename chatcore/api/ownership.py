"""Find rows by their id for the user who asks; what belongs to others does not exist for them."""

from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework.request import Request

from chatcore.base.databases.compiled_queries import CompiledQuery
from chatcore.models import Attachment, Message, Session


def get_owned_session(request: Request, session_id: UUID) -> Session:
    """Return the user's session with its language model. Raises Http404."""
    queryset = Session.objects.owned_by(request.user).select_related("model__provider")
    return get_object_or_404(queryset, pk=session_id)


_OWNED_SESSIONS = CompiledQuery(
    lambda pk, owner_id: Session.objects.filter(pk=pk, owner=owner_id).only("id", "owner")
)


def find_owned_session(request: Request, session_id: UUID) -> Session:
    """Return the user's session with its keys alone, for what reads it again under its lock.

    Raises Http404.
    """
    for session in _OWNED_SESSIONS.fetch(session_id, request.user.pk):
        return session
    raise Http404


def get_owned_message(request: Request, message_id: int) -> Message:
    """Return the message of one of the user's sessions, with its session. Raises Http404."""
    queryset = Message.objects.filter(
        session__in=Session.objects.owned_by(request.user)
    ).select_related("session__model__provider")
    return get_object_or_404(queryset, pk=message_id)


def filter_owned_attachments(request: Request) -> QuerySet[Attachment]:
    """Return the files of the user's sessions."""
    return Attachment.objects.filter(session__in=Session.objects.owned_by(request.user))

"""The context: what the next request would send, and the summary in it."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.serializers import PreviewSerializer, SessionSerializer, SummarySerializer
from chatcore.api.sessions import get_owned_session
from chatcore.context import builder, revisions
from chatcore.events import log as event_log
from chatcore.models import Session
from chatcore.rest import conditions
from chatcore.tools import registry as tool_registry


class ContextPreviewView(APIView):
    """What the model is shown."""

    @extend_schema(
        operation_id="preview_context", parameters=[conditions.ETAG], responses=PreviewSerializer
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Exactly what the next request would send."""
        session = get_owned_session(request, session_id)
        model_request = builder.build_request(
            session, tools=tool_registry.list_session_tools(session)
        )
        preview = {
            "model": model_request.model,
            "context_version": session.context_version,
            "system": model_request.system,
            "preface": model_request.preface,
            "messages": model_request.messages,
            "tools": model_request.tools,
            "max_tokens": model_request.max_tokens,
            "params": model_request.params,
        }
        return Response(
            PreviewSerializer(preview).data,
            headers=conditions.build_etag_headers(session.context_version),
        )


class SummaryView(GenericAPIView[Session]):
    """The session's summary."""

    serializer_class = SummarySerializer

    @extend_schema(
        operation_id="edit_summary",
        parameters=[conditions.IF_MATCH, conditions.ETAG],
        responses={200: SessionSerializer} | conditions.CONTEXT_CHANGED_RESPONSES,
    )
    def patch(self, request: Request, session_id: UUID) -> Response:
        """Put other words in place of the summary, from the next request on."""
        session = get_owned_session(request, session_id)
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if session.compacted_summary is None:
            raise Http404
        summary, version = (
            serializer.validated_data["summary"],
            conditions.check_if_match(request, session.context_version),
        )
        _apply_change(
            session,
            lambda: revisions.reword_summary(session.pk, base_version=version, summary=summary),
        )
        session = get_owned_session(request, session_id)
        return Response(
            SessionSerializer(session).data,
            headers=conditions.build_etag_headers(session.context_version),
        )

    @extend_schema(
        operation_id="reset_summary",
        request=None,
        parameters=[conditions.IF_MATCH],
        responses={204: None} | conditions.CONTEXT_CHANGED_RESPONSES,
    )
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Forget the summary: the full history is sent again. The structured state and the memory stay, and are sent as before."""
        session = get_owned_session(request, session_id)
        version = conditions.check_if_match(request, session.context_version)
        _apply_change(session, lambda: revisions.reset_context(session.pk, base_version=version))
        return Response(status=204)


def _apply_change(session: Session, change: Callable[[], Any]) -> None:
    """Change it and tell open pages, or raise the 412 problem when another change came first."""
    try:
        with transaction.atomic():
            change()
            event_log.append_events(
                session.pk, ("session.updated", {"fields": ["compacted_summary"]})
            )
    except revisions.StaleContext:
        session.refresh_from_db(fields=["context_version"])
        raise conditions.build_context_changed_problem(session.context_version) from None

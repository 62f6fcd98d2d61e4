"""The context: what the next request would send, and the summary in it."""

from collections.abc import Callable
from uuid import UUID

from django.db import transaction
from django.http import Http404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.ownership import get_owned_session
from chatcore.api.serializers.context import (
    PreviewSerializer,
    SummarySerializer,
    VersionSerializer,
)
from chatcore.api.serializers.sessions import SessionSerializer
from chatcore.base.rest import conditions
from chatcore.base.rest.problems import Problem
from chatcore.context import revisions
from chatcore.context.compactor import get_compactor
from chatcore.models import ContextRevision, Session
from chatcore.providers.protocols import load_protocol
from chatcore.sessions.changes import record_session_change
from chatcore.signals import pre_request
from chatcore.turns import recall
from chatcore.turns.prepared_calls import build_next_request, list_left_out


class ContextPreviewView(APIView):
    """The next request."""

    @extend_schema(
        operation_id="preview_context", parameters=[conditions.ETAG], responses=PreviewSerializer
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return exactly what the next request would send."""
        session = get_owned_session(request, session_id)
        pre_request.send(None, session=session)
        complete_request = build_next_request(session)
        fitted_request = get_compactor().preview_request(session, complete_request)
        model_request = fitted_request.request
        sent_request = model_request
        if session.model:
            protocol = session.model.provider.protocol
            sent_request = load_protocol(protocol).normalize(model_request)
        preview = {
            "model": model_request.model,
            "context_version": session.context_version,
            "system": sent_request.system,
            "preface": sent_request.preface,
            "messages": sent_request.messages,
            "tools": model_request.tools,
            "max_tokens": model_request.max_tokens,
            "params": model_request.params,
            "tokens": fitted_request.tokens,
            "notices": fitted_request.notices,
            "left_out": list_left_out(complete_request, model_request),
            "recalled": recall.list_newest_passages(session),
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
        """Replace the text of the summary, from the next request on."""
        session = get_owned_session(request, session_id)
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if session.compacted_summary is None:
            raise Http404
        summary = serializer.validated_data["summary"]
        version = conditions.check_if_match(request, session.context_version)
        _change_context(
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
        """Remove the summary, so that the full history is sent again.

        The structured state and the memory stay, and are still sent.
        """
        session = get_owned_session(request, session_id)
        version = conditions.check_if_match(request, session.context_version)
        _change_context(session, lambda: revisions.reset_context(session.pk, base_version=version))
        return Response(status=204)


class RewindContextView(GenericAPIView[Session]):
    """Going back to an earlier version of the context."""

    serializer_class = VersionSerializer

    @extend_schema(
        operation_id="rewind_context",
        parameters=[conditions.IF_MATCH, conditions.ETAG],
        responses={
            200: SessionSerializer,
            409: OpenApiResponse(description="There is no such version."),
        }
        | conditions.CONTEXT_CHANGED_RESPONSES,
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Let the model see again what it saw at a version; that is a new version."""
        session = get_owned_session(request, session_id)
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        version = serializer.validated_data["version"]

        def rewind() -> None:
            locked_session = Session.objects.lock(session_id)
            conditions.check_if_match(request, locked_session.context_version)
            revisions.rewind_context(session_id, to_version=version)

        try:
            _change_context(session, rewind)
        except ContextRevision.DoesNotExist:
            detail = f"There is no context version {version}."
            raise Problem(409, "not_rewindable", detail) from None
        session = get_owned_session(request, session_id)
        return Response(
            SessionSerializer(session).data,
            headers=conditions.build_etag_headers(session.context_version),
        )


def _change_context(session: Session, change: Callable[[], object]) -> None:
    """Change the context and announce it to open pages.

    Raises the 412 problem if another change was installed after the client read its version: the
    version that `check_if_match` compared was read without a lock.
    """
    try:
        with transaction.atomic():
            change()
            record_session_change(session.pk, fields=["compacted_summary"], is_user_act=False)
    except revisions.StaleContext:
        session.refresh_from_db(fields=["context_version"])
        raise conditions.build_context_changed_problem(session.context_version) from None

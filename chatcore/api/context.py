"""The context: what the next request would send, and the summary in it."""

from uuid import UUID

from django.db import transaction
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore import context, events, tools
from chatcore.api.problems import Problem
from chatcore.api.serializers import PreviewSerializer, SessionSerializer, SummarySerializer
from chatcore.api.sessions import owned
from chatcore.models import Session


class Preview(APIView):
    """What the model is shown."""

    @extend_schema(operation_id="preview_context", responses=PreviewSerializer)
    def get(self, request: Request, session_id: UUID) -> Response:
        """Exactly what the next request would send."""
        session = owned(request, session_id)
        sent = context.build_request(session, tools=tools.offered_to(session))
        fields = {
            "model": sent.model,
            "context_version": session.context_version,
            "system": sent.system,
            "preface": sent.preface,
            "messages": sent.messages,
            "tools": sent.tools,
            "max_tokens": sent.max_tokens,
            "params": sent.params,
        }
        return Response(PreviewSerializer(fields).data)


class Summary(GenericAPIView[Session]):
    """The session's summary."""

    serializer_class = SummarySerializer

    @extend_schema(operation_id="edit_summary", responses=SessionSerializer)
    def patch(self, request: Request, session_id: UUID) -> Response:
        """Put other words in place of the summary, from the next request on."""
        session = owned(request, session_id)
        fields = self.get_serializer(data=request.data)
        fields.is_valid(raise_exception=True)
        if session.compacted_summary is None:
            raise Http404
        _edit(session, fields.validated_data["summary"])
        return Response(SessionSerializer(owned(request, session_id)).data)

    @extend_schema(operation_id="reset_summary", request=None, responses={204: None})
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Forget the summary: the full history is sent again."""
        session = owned(request, session_id)
        with transaction.atomic():
            context.reset(session.pk)
            events.append(session.pk, ("session.updated", {"fields": ["compacted_summary"]}))
        return Response(status=204)


def _edit(session: Session, summary: str) -> None:
    try:
        with transaction.atomic():
            context.reword(session.pk, base_version=session.context_version, summary=summary)
            events.append(session.pk, ("session.updated", {"fields": ["compacted_summary"]}))
    except context.StaleContext as stale:
        raise Problem(409, "context_changed", str(stale)) from None

"""Turns: a user's message in, an answer out; results of tools that the client ran; stopping it all."""

from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.attachments import resolve_attachments
from chatcore.api.serializers import CancelledSerializer
from chatcore.api.sessions import get_owned_session
from chatcore.api.turn_requests import NewMessageSerializer, ToolResultsSerializer
from chatcore.api.turn_responses import (
    NEW_TURN_RESPONSES,
    PREFER_PARAMETER,
    TURN_PARAMETERS,
    TURN_RESPONSES,
    build_idempotency_fields,
    respond_with_turn,
    translate_turn_errors,
)
from chatcore.rest import limits
from chatcore.turns import client_tools, service

SEND_MESSAGE_SCHEMA = extend_schema(
    operation_id="send_message",
    request=NewMessageSerializer,
    parameters=TURN_PARAMETERS,
    responses=NEW_TURN_RESPONSES,
)


def send_message(request: Request, session_id: UUID) -> HttpResponseBase:
    """Start a turn; wait for its end, stream it, or leave it to the client to follow."""
    session = get_owned_session(request, session_id)
    serializer = NewMessageSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    payload = serializer.validated_data
    idempotency = build_idempotency_fields(request, "send", payload)
    limits.count_turn(request)
    attachment_ids = resolve_attachments(session, payload.get("attachments", ()))
    with translate_turn_errors():
        turn = service.start_turn(
            session,
            content=payload["content"],
            attachments=attachment_ids,
            tools=payload.get("tools", ()),
            **idempotency,
        )
    return respond_with_turn(request, turn, stream=payload.get("stream", False))


class ToolResultsView(APIView):
    """Results of tools that the client runs itself."""

    @extend_schema(
        operation_id="submit_tool_results",
        request=ToolResultsSerializer,
        parameters=[PREFER_PARAMETER],
        responses=TURN_RESPONSES,
    )
    def post(self, request: Request, session_id: UUID) -> HttpResponseBase:
        """Bring results of calls that wait; the turn goes on when all are in. The same results again give the same turn."""
        session = get_owned_session(request, session_id)
        serializer = ToolResultsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        results = [
            client_tools.ClientToolResult(**result)
            for result in serializer.validated_data["results"]
        ]
        with translate_turn_errors():
            turn, after_seq = service.submit_tool_results(session, results)
        return respond_with_turn(
            request,
            turn,
            stream=serializer.validated_data.get("stream", False),
            after_seq=after_seq,
        )


class CancelTurnView(APIView):
    """Stopping an answer."""

    @extend_schema(operation_id="cancel_turn", request=None, responses=CancelledSerializer)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Stop answering, or waiting for results of tools; what was said is kept as `interrupted`."""
        return Response(
            {"cancelled": service.cancel_turn(get_owned_session(request, session_id).pk)}
        )

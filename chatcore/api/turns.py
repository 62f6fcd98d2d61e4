"""Turns: a user's message in, an answer out; results of tools that the client ran; stopping it all."""

from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.attachments import taken_in
from chatcore.api.serializers import CancelledSerializer
from chatcore.api.sessions import owned
from chatcore.api.turn_requests import NewMessageSerializer, ToolResultsSerializer
from chatcore.api.turn_responses import (
    NEW_TURN,
    PARAMETERS,
    PREFER,
    RESPONSES,
    keyed,
    refusals,
    respond,
)
from chatcore.rest import limits
from chatcore.turns import client_tools, service

MESSAGE_SCHEMA = extend_schema(
    operation_id="send_message",
    request=NewMessageSerializer,
    parameters=PARAMETERS,
    responses=NEW_TURN,
)


def post_message(request: Request, session_id: UUID) -> HttpResponseBase:
    """Start a turn; wait for its end, stream it, or leave it to the client to follow."""
    session = owned(request, session_id)
    fields = NewMessageSerializer(data=request.data)
    fields.is_valid(raise_exception=True)
    said = fields.validated_data
    key = keyed(request, "send", said)
    limits.count_turn(request)
    attached = taken_in(session, said.get("attachments", ()))
    with refusals():
        turn = service.start(
            session,
            content=said["content"],
            attachments=attached,
            tools=said.get("tools", ()),
            **key,
        )
    return respond(request, turn, stream=said.get("stream", False))


class ToolResults(APIView):
    """Results of tools that the client runs itself."""

    @extend_schema(
        operation_id="submit_tool_results",
        request=ToolResultsSerializer,
        parameters=[PREFER],
        responses=RESPONSES,
    )
    def post(self, request: Request, session_id: UUID) -> HttpResponseBase:
        """Bring results of calls that wait; the turn goes on when all are in. The same results again give the same turn."""
        session = owned(request, session_id)
        fields = ToolResultsSerializer(data=request.data)
        fields.is_valid(raise_exception=True)
        results = [client_tools.Result(**result) for result in fields.validated_data["results"]]
        with refusals():
            turn, after = service.submit_tool_results(session, results)
        return respond(
            request, turn, stream=fields.validated_data.get("stream", False), after=after
        )


class Cancel(APIView):
    """Stopping an answer."""

    @extend_schema(operation_id="cancel_turn", request=None, responses=CancelledSerializer)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Stop answering, or waiting for results of tools; what was said is kept as `interrupted`."""
        return Response({"cancelled": service.cancel(owned(request, session_id).pk)})

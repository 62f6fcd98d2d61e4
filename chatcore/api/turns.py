"""Running turns: send the results of a client's own tools, or stop the answer."""

from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.ownership import get_owned_session
from chatcore.api.serializers.turns import CancelledSerializer
from chatcore.api.turn_requests import PREFER_PARAMETER, ToolResultsSerializer
from chatcore.api.turn_responses import TURN_RESPONSES, respond_with_turn
from chatcore.rest import turn_rate
from chatcore.turns import client_tools, service


class ToolResultsView(APIView):
    """Results of tools that the client runs itself."""

    @extend_schema(
        operation_id="submit_tool_results",
        request=ToolResultsSerializer,
        parameters=[PREFER_PARAMETER],
        responses=TURN_RESPONSES,
    )
    def post(self, request: Request, session_id: UUID) -> HttpResponseBase:
        """Send results of calls that wait; the turn continues when none is missing.

        The same results sent again give the same turn.
        """
        session = get_owned_session(request, session_id)
        serializer = ToolResultsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        turn_rate.count_turn(request)
        payload = serializer.validated_data
        results = [client_tools.ClientToolResult(**result) for result in payload["results"]]
        turn, after_seq = service.submit_tool_results(session, results)
        return respond_with_turn(
            request, turn, stream=payload.get("stream", False), after_seq=after_seq
        )


class CancelTurnView(APIView):
    """Stopping a turn."""

    @extend_schema(operation_id="cancel_turn", request=None, responses=CancelledSerializer)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Stop the answer, or stop waiting for results of tools.

        The text so far is stored as a message with the status `interrupted`.
        """
        session = get_owned_session(request, session_id)
        return Response({"cancelled": service.cancel_turn(session.pk)})

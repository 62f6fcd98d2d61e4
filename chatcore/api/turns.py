"""Running turns: send results of a client's own tools, approve calls, or stop the answer."""

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.ownership import get_owned_session
from chatcore.api.serializers.turns import (
    ApprovalsSerializer,
    ApprovalStateSerializer,
    CancelledSerializer,
)
from chatcore.api.turn_requests import (
    PREFER_PARAMETER,
    TURN_RESPONSES,
    ToolResultsSerializer,
    respond_with_turn,
)
from chatcore.base.rest import turn_rate
from chatcore.base.rest.fields import StrictSerializer
from chatcore.models import Turn
from chatcore.turns import client_tools, control, waiting


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
        payload = _read_payload(request, ToolResultsSerializer)
        results = [client_tools.ClientToolResult(**result) for result in payload["results"]]
        turn = session.turns.filter(status=Turn.Status.WAITING).first()
        if turn is not None and not client_tools.has_results(turn, results):
            turn_rate.count_turn(request, has_results=True)
        turn, after_seq = control.submit_tool_results(session, results)
        return respond_with_turn(
            request, turn, stream=payload.get("stream", False), after_seq=after_seq
        )


class ApprovalListView(APIView):
    """Approvals of a session."""

    @extend_schema(operation_id="list_approvals", responses=ApprovalStateSerializer)
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the calls that wait for a person, and the decisions that hold."""
        session = get_owned_session(request, session_id)
        turn = session.turns.filter(status=Turn.Status.WAITING).first()
        undecided_calls = waiting.find_open_calls(turn).undecided_calls if turn else ()
        state = {
            "waiting": waiting.build_approval_requests(turn, undecided_calls) if turn else [],
            "decisions": waiting.list_decisions(session),
        }
        return Response(ApprovalStateSerializer(state).data)

    @extend_schema(
        operation_id="submit_approvals",
        request=ApprovalsSerializer,
        parameters=[PREFER_PARAMETER],
        responses=TURN_RESPONSES,
    )
    def post(self, request: Request, session_id: UUID) -> HttpResponseBase:
        """Allow or refuse calls that wait; the turn continues when none is left.

        The same decisions sent again give the same turn.
        """
        session = get_owned_session(request, session_id)
        payload = _read_payload(request, ApprovalsSerializer)
        decisions = [waiting.Approval(**approval) for approval in payload["approvals"]]
        turn = session.turns.filter(status=Turn.Status.WAITING).first()
        if turn is not None and not waiting.has_decisions(turn, decisions):
            turn_rate.count_turn(request)
        turn, after_seq = control.submit_approvals(session, decisions)
        return respond_with_turn(
            request, turn, stream=payload.get("stream", False), after_seq=after_seq
        )

    @extend_schema(operation_id="forget_approvals", request=None, responses={204: None})
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Forget what was decided for good, so that every tool is asked for again."""
        waiting.forget_decisions(get_owned_session(request, session_id))
        return Response(status=204)


class CancelTurnView(APIView):
    """Stopping a turn."""

    @extend_schema(operation_id="cancel_turn", request=None, responses=CancelledSerializer)
    def post(self, request: Request, session_id: UUID) -> Response:
        """Stop the answer, or stop waiting for results of tools.

        The text so far is stored as a message with the status `interrupted`.
        """
        session = get_owned_session(request, session_id)
        return Response({"cancelled": control.cancel_turn(session.pk)})


def _read_payload(request: Request, serializer_class: type[StrictSerializer]) -> dict[str, Any]:
    """Check what continues a waiting turn. Raises the problem."""
    serializer = serializer_class(data=request.data)
    serializer.is_valid(raise_exception=True)
    payload: dict[str, object] = serializer.validated_data
    return payload

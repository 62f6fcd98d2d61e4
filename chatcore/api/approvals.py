"""Approvals: what a person decides about calls of MCP servers' tools."""

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.api.ownership import get_owned_session
from chatcore.api.serializers.turns import ApprovalRequestSerializer
from chatcore.api.turn_requests import PREFER_PARAMETER, STREAM_HELP_TEXT
from chatcore.api.turn_responses import TURN_RESPONSES, respond_with_turn
from chatcore.models import ToolApproval, Turn
from chatcore.rest import turn_rate
from chatcore.rest.fields import StrictBooleanField, StrictSerializer, StrictTextField
from chatcore.turns import approvals, client_tools, service, waiting


# Its own name in bodies would be that of ApprovalRequestSerializer.
@extend_schema_serializer(component_name="ApprovalDecision")
class ApprovalSerializer(StrictSerializer):
    """A decision about one call."""

    tool_call_id = StrictTextField(max_length=255)
    decision = serializers.ChoiceField(
        ToolApproval.Decision.choices,
        help_text=(
            "`once` allows this call, `deny` refuses it; `always` and `never` hold for its tool in"
            " the rest of the session too."
        ),
    )


class ApprovalsSerializer(StrictSerializer):
    """Decisions about calls that wait: all of them, or some."""

    approvals = serializers.ListField(
        child=ApprovalSerializer(), min_length=1, max_length=client_tools.MAX_TOOLS
    )
    stream = StrictBooleanField(required=False, help_text=STREAM_HELP_TEXT)


class LastingDecisionSerializer(serializers.ModelSerializer[ToolApproval]):
    """A decision that holds for a tool in this session."""

    server = serializers.CharField(source="server.name")

    class Meta:
        model = ToolApproval
        fields = ("server", "tool", "decision", "created_at")
        read_only_fields = fields


class ApprovalStateSerializer(serializers.Serializer[Any]):
    """The calls that wait for a person, and what was decided for good, the newest first."""

    waiting = ApprovalRequestSerializer(many=True)
    decisions = LastingDecisionSerializer(many=True)


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
            "decisions": approvals.list_decisions(session),
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
        serializer = ApprovalsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        turn_rate.count_turn(request)
        payload = serializer.validated_data
        decisions = [approvals.Approval(**approval) for approval in payload["approvals"]]
        turn, after_seq = service.submit_approvals(session, decisions)
        return respond_with_turn(
            request, turn, stream=payload.get("stream", False), after_seq=after_seq
        )

    @extend_schema(operation_id="forget_approvals", request=None, responses={204: None})
    def delete(self, request: Request, session_id: UUID) -> Response:
        """Forget what was decided for good, so that every tool is asked for again."""
        approvals.forget_decisions(get_owned_session(request, session_id))
        return Response(status=204)

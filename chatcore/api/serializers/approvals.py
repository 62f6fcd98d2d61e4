"""Approvals in the REST API: what a person decides about calls of MCP servers' tools."""

from typing import Any

from rest_framework import serializers

from chatcore.api.serializers.turns import STREAM_HELP_TEXT, ApprovalRequestSerializer
from chatcore.base.rest.fields import StrictBooleanField, StrictSerializer, StrictTextField
from chatcore.models import ToolApproval
from chatcore.turns import client_tools


class ApprovalDecisionSerializer(StrictSerializer):
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
        child=ApprovalDecisionSerializer(), min_length=1, max_length=client_tools.MAX_TOOLS
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

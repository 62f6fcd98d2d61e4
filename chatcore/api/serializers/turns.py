"""Turns in the REST API, and what a person decides about calls that wait."""

from rest_framework import serializers

from chatcore.api.serializers.messages import MessageSerializer, ToolCallSerializer
from chatcore.base.rest.fields import StrictBooleanField, StrictSerializer, StrictTextField
from chatcore.models import ToolApproval
from chatcore.turns import client_tools

STREAM_HELP_TEXT = "Answer with the turn's events."


class ApprovalRequestSerializer(serializers.Serializer[object]):
    """A call of an MCP server's tool that waits for a person; `arguments` is JSON text."""

    id = serializers.CharField()
    name = serializers.CharField(help_text="What the model calls the tool.")
    arguments = serializers.CharField()
    server = serializers.CharField()
    tool = serializers.CharField(help_text="What the server calls it.")


class AnswerSerializer(serializers.Serializer[object]):
    """A turn that has ended, or waits: for results of the client's tools, or for approvals."""

    turn = serializers.UUIDField()
    status = serializers.ChoiceField(["completed", "waiting", "cancelled"])
    user_message = MessageSerializer(
        allow_null=True, help_text="The message that was answered; null if it was deleted since."
    )
    assistant_message = MessageSerializer(
        allow_null=True, help_text="Null if the turn was cancelled before any text came."
    )
    tool_messages = MessageSerializer(many=True, help_text="The results of tool calls, in order.")
    requires_action = ToolCallSerializer(
        many=True, help_text="The calls whose results the client must send; empty if none waits."
    )
    approvals = ApprovalRequestSerializer(
        many=True, help_text="The calls that a person must allow or refuse; empty if none waits."
    )
    context_trimmed = serializers.BooleanField(
        help_text="What the assistant's message says of its request."
    )
    notices = serializers.ListField(
        child=serializers.CharField(),
        help_text="What the user is told besides; once, and not again at each answer.",
    )


class StartedTurnSerializer(serializers.Serializer[object]):
    """A turn that is running; `events` is the URL of its events."""

    turn = serializers.UUIDField()
    session = serializers.UUIDField()
    user_message = serializers.IntegerField(allow_null=True)
    events = serializers.CharField()


class CancelledSerializer(serializers.Serializer[object]):
    """False if there was nothing to stop."""

    cancelled = serializers.BooleanField()


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


class ApprovalStateSerializer(serializers.Serializer[object]):
    """The calls that wait for a person, and what was decided for good, the newest first."""

    waiting = ApprovalRequestSerializer(many=True)
    decisions = LastingDecisionSerializer(many=True)

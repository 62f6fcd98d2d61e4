"""How full the context window of a session is."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.base.rest import conditions
from compaction.api.session_scope import SessionScopedView, load_owned_context
from compaction.sessions import usage


class BreakdownSerializer(serializers.Serializer[Any]):
    """The tokens of the next request by their use."""

    system_prompt = serializers.IntegerField()
    summary = serializers.IntegerField()
    conversation_history = serializers.IntegerField()
    current_prompt = serializers.IntegerField()
    tool_definitions = serializers.IntegerField()
    file_attachments = serializers.IntegerField()


class ContextSerializer(serializers.Serializer[Any]):
    """How full the context window is, in tokens; null where the window is unknown."""

    estimated_input_tokens = serializers.IntegerField()
    available_input_tokens = serializers.IntegerField(allow_null=True)
    context_window = serializers.IntegerField(allow_null=True)
    window_source = serializers.ChoiceField(
        ["registry", "learned"],
        allow_null=True,
        help_text="Where the window is from; `learned`: a refusal of the provider has shown it.",
    )
    threshold_tokens = serializers.IntegerField(allow_null=True)
    usage_ratio = serializers.FloatField(allow_null=True)
    should_compact = serializers.BooleanField()
    level = serializers.ChoiceField(["ok", "warning", "critical"], allow_null=True)
    # The framework moves declared fields out of the class, so `source` hides nothing.
    source = serializers.ChoiceField(["provider", "estimated"])  # type: ignore[assignment]
    message_count = serializers.IntegerField()
    live_message_count = serializers.IntegerField()
    breakdown = BreakdownSerializer()
    policy = serializers.CharField()
    automatic = serializers.ChoiceField(
        ["on", "off", "waiting", "stopped"], help_text="Whether runs start by themselves."
    )
    compacting = serializers.BooleanField(help_text="A summary is being written.")


class ContextUsageView(SessionScopedView):
    """How full the context window is."""

    @extend_schema(
        operation_id="read_context", parameters=[conditions.ETAG], responses=ContextSerializer
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the tokens of the next request and of the window; null if it is unknown."""
        context = load_owned_context(request, session_id)
        headers = conditions.build_etag_headers(context.facts.live.version)
        return Response(usage.describe_usage(context), headers=headers)

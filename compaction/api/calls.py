"""What was asked of the language model in a run, and what it answered."""

from uuid import UUID

from django.db.models import Q
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compaction.api.runs import get_owned_run
from compaction.api.session_scope import SessionScopedView
from compaction.models import ModelCall


class CallSerializer(serializers.ModelSerializer[ModelCall]):
    """A call of a language model. `cost` is in the currency of the models' prices."""

    cost = serializers.FloatField(allow_null=True)
    refusal = serializers.CharField(
        help_text="no_answer, nonsense, untrue or state_only; empty if the answer was used."
    )
    is_kept = serializers.BooleanField(
        help_text="False: request and answer are forgotten, because a message was deleted."
    )

    class Meta:
        model = ModelCall
        fields: tuple[str, ...] = (
            "number",
            "claim",
            "kind",
            "level",
            "part",
            "attempt",
            "model",
            "finish",
            "refusal",
            "reason",
            "input_tokens",
            "cached_tokens",
            "output_tokens",
            "cost",
            "seconds",
            "first_word_seconds",
            "ended_at",
            "is_kept",
        )
        read_only_fields = fields


class CallWithTextsSerializer(CallSerializer):
    """A call with what was sent and what came, word for word."""

    request = serializers.CharField(
        source="request_text",
        allow_null=True,
        help_text="The body as it was sent; no key is in it.",
    )
    answer = serializers.CharField(
        source="answer_text", allow_null=True, help_text="The text as the model wrote it."
    )

    class Meta(CallSerializer.Meta):
        fields = (*CallSerializer.Meta.fields, "request", "answer")
        read_only_fields = fields


class CallListView(SessionScopedView):
    """The calls of a run, in the order in which they ended."""

    serializer_class = CallSerializer

    @extend_schema(operation_id="list_calls", responses=CallSerializer(many=True))
    def get(self, request: Request, run_id: UUID) -> Response:
        """Return a page of calls, without requests and answers.

        They make a tree: levels, of which a merge reads the one below; parts; attempts at a part.
        They are kept for some days (`CHATCORE_CALL_RETENTION_DAYS`).
        """
        calls = get_owned_run(request, run_id).calls.defer("request", "answer")
        page = self.paginate_queryset(calls.annotate(is_kept=Q(request__isnull=False)))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class CallDetailView(SessionScopedView):
    """One call with its texts."""

    serializer_class = CallWithTextsSerializer

    @extend_schema(operation_id="read_call")
    def get(self, request: Request, run_id: UUID, number: int) -> Response:
        """Return the call with its request and answer."""
        calls = get_owned_run(request, run_id).calls.annotate(is_kept=Q(request__isnull=False))
        return Response(self.get_serializer(get_object_or_404(calls, number=number)).data)

"""What the summary leaves out."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compaction.api.session_scope import SessionScopedView, load_owned_context
from compaction.memory.api.ledger import LedgerLineSerializer, serialize_lines
from compaction.memory.core.verify.completion import VERBATIM_HEADING
from compaction.memory.ledger import missing


class MissingSerializer(serializers.Serializer[Any]):
    """Rules, decisions and exact values of summarized messages that nothing sent says."""

    context_version = serializers.IntegerField()
    lines = LedgerLineSerializer(
        many=True, help_text="The most binding ones, with the message that says each."
    )
    count = serializers.IntegerField(help_text="How many there are in all.")
    is_complete = serializers.BooleanField(
        help_text="False while older messages are still to be read: ask again."
    )
    heading = serializers.CharField(
        help_text="To put a line in, add it to the end of the summary under this heading, "
        "as `- text`; later summaries carry it on word for word."
    )


class MissingView(SessionScopedView):
    """What the summary in force leaves out."""

    serializer_class = MissingSerializer

    @extend_schema(operation_id="read_missing_lines", responses=MissingSerializer)
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return what was said in summarized messages and is not sent any more."""
        context = load_owned_context(request, session_id)
        missing_lines = missing.find_missing_lines(context)
        return Response(
            {
                "context_version": context.facts.live.version,
                "lines": serialize_lines(session_id, list(missing_lines.lines)),
                "count": missing_lines.count,
                "is_complete": missing_lines.is_complete,
                "heading": VERBATIM_HEADING,
            }
        )

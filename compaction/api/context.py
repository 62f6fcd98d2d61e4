"""How full the context window of a session is."""

from collections.abc import Callable, Mapping
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.base.rest import conditions
from chatcore.base.rest.problems import Problem
from chatcore.context.history import load_history
from chatcore.context.revisions import StaleContext
from compaction.api.session_scope import (
    SessionScopedView,
    get_owned_session_id,
    load_context_version,
    load_owned_context,
)
from compaction.runs import history
from compaction.sessions import request_size
from compaction.sessions.facts import load_sent_tokens


class BreakdownSerializer(serializers.Serializer[Mapping[str, object]]):
    """The tokens of the next request by their use."""

    system_prompt = serializers.IntegerField()
    summary = serializers.IntegerField()
    conversation_history = serializers.IntegerField()
    current_prompt = serializers.IntegerField()
    tool_definitions = serializers.IntegerField()
    file_attachments = serializers.IntegerField()


class ContextSerializer(serializers.Serializer[Mapping[str, object]]):
    """How full the context window is, in tokens; null where the window is unknown."""

    estimated_input_tokens = serializers.IntegerField()
    sent_input_tokens = serializers.IntegerField(
        allow_null=True,
        help_text=(
            "The tokens of the last request that was answered, as its provider counted them or else"
            " as they were estimated. Fewer than the context has if the request was trimmed."
        ),
    )
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
    next_request = serializers.ChoiceField(
        ["complete", "summarized", "trimmed"],
        help_text=(
            "What the next request is made of: all messages; a summary that is written first; or"
            " only the newest messages, because the last summary failed or automatic ones have"
            " stopped. `tokens` of `GET …/context/preview` is its size."
        ),
    )


class ContextUsageView(SessionScopedView):
    """How full the context window is."""

    @extend_schema(
        operation_id="read_context", parameters=[conditions.ETAG], responses=ContextSerializer
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return the tokens of the next request and of the window; null if it is unknown."""
        context = load_owned_context(request, session_id)
        headers = conditions.build_etag_headers(context.facts.live.version)
        usage = request_size.describe_usage(context)
        sent_tokens = load_sent_tokens(session_id)
        return Response(usage | {"sent_input_tokens": sent_tokens}, headers=headers)


class HistorySerializer(serializers.Serializer[Mapping[str, object]]):
    """What led to the context in force."""

    context_version = serializers.IntegerField()
    can_undo = serializers.BooleanField()
    can_redo = serializers.BooleanField()
    is_edited = serializers.BooleanField(help_text="A user worded the summary in force.")
    previous_summary = serializers.CharField(
        allow_null=True, help_text="The summary that an undo brings back; null for none."
    )


class HistoryView(SessionScopedView):
    """What can be undone and redone."""

    @extend_schema(
        operation_id="read_context_history",
        parameters=[conditions.ETAG],
        responses=HistorySerializer,
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return whether the last change of the context can be undone, or redone."""
        return _describe_history(get_owned_session_id(request, session_id))


class _MoveView(SessionScopedView):
    def move(self, request: Request, session_id: UUID, change: Callable[..., None]) -> Response:
        """Undo or redo one step, and return the history as it then is."""
        get_owned_session_id(request, session_id)
        base_version = conditions.check_if_match(request, load_context_version(session_id))
        try:
            change(session_id, base_version=base_version)
        except history.NothingToMove as error:
            raise Problem(409, "nothing_to_move", str(error)) from None
        except StaleContext:
            version = load_context_version(session_id)
            raise conditions.build_context_changed_problem(version) from None
        return _describe_history(session_id)


_RESPONSES = {
    200: HistorySerializer,
    409: OpenApiResponse(description="There is no step in this direction."),
} | conditions.CONTEXT_CHANGED_RESPONSES


class UndoView(_MoveView):
    """One step back."""

    @extend_schema(
        operation_id="undo_context_change",
        request=None,
        parameters=[conditions.IF_MATCH],
        responses=_RESPONSES,
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Undo the last change of what the model sees: a summary, an edit of it, or a reset."""
        return self.move(request, session_id, history.undo_step)


class RedoView(_MoveView):
    """One step forward."""

    @extend_schema(
        operation_id="redo_context_change",
        request=None,
        parameters=[conditions.IF_MATCH],
        responses=_RESPONSES,
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Redo what was undone last."""
        return self.move(request, session_id, history.redo_step)


def _describe_history(session_id: UUID) -> Response:
    context_history = load_history(session_id)
    version = load_context_version(session_id)
    description = {
        "context_version": version,
        "can_undo": context_history.undo_version is not None,
        "can_redo": context_history.redo_version is not None,
        "is_edited": context_history.is_edited(context_history.current),
        "previous_summary": context_history.get_summary(context_history.undo_version),
    }
    return Response(
        HistorySerializer(description).data, headers=conditions.build_etag_headers(version)
    )

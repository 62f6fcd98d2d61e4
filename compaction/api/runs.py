"""The REST face of compaction: runs, what the context holds, and the policies. It sees only what is the asker's."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.backends.base import StaleTranscript
from compaction.core.knobs import PolicyError
from compaction.core.policy import STAGES
from compaction.models import MAX_SEQ, OPEN_STATUSES, CompactionRun
from compaction.runs import engine, queue
from compaction.sizing import session_context, usage
from compaction.sizing.session_context import NoSuchSession

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="A `context_version`, as in `ETag`: go back from that version, or not (412).",
)
ETAG = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    response=[200],
    description="The `context_version`, in quotes.",
)


class NotRewindableProblem(APIException):
    """Nothing to take back."""

    status_code = 409
    default_code = "not_rewindable"


class OpenRunProblem(APIException):
    """Another run is open, and asked for otherwise."""

    status_code = 409
    default_code = "compaction_running"


class ContextChangedProblem(APIException):
    """The context is not what the client knows."""

    status_code = 412
    default_code = "context_changed"


class RunSerializer(serializers.ModelSerializer[CompactionRun]):
    """One compaction: the job, and afterwards its record. Tokens are of the context; `cost` is in the currency of the prices."""

    id = serializers.UUIDField(
        allow_null=True, help_text="Null for a dry run, which is not stored."
    )
    session = serializers.UUIDField(source="session_id")
    stages_used = serializers.ListField(child=serializers.CharField())
    edits = serializers.ListField(child=serializers.DictField())
    targets = serializers.ListField(
        child=serializers.DictField(),
        help_text="Each message changed: seq, role, tool, method, sizes.",
    )
    state_after = serializers.DictField(help_text="Structured state and memory from here on.")
    tokens_saved = serializers.IntegerField(allow_null=True)
    duration_ms = serializers.IntegerField(allow_null=True)
    cost = serializers.FloatField(allow_null=True)

    class Meta:
        model = CompactionRun
        fields = (
            "id",
            "session",
            "trigger",
            "policy",
            "status",
            "stages_used",
            "tokens_before",
            "tokens_after",
            "tokens_saved",
            "messages_compacted",
            "boundary_before",
            "boundary_after",
            "summary_before",
            "summary_after",
            "model",
            "provider_calls",
            "attempts",
            "input_tokens",
            "output_tokens",
            "cost",
            "error",
            "reason",
            "instructions",
            "created_at",
            "started_at",
            "finished_at",
            "duration_ms",
            "edits",
            "targets",
            "state_after",
        )
        read_only_fields = fields


class CompactSerializer(serializers.Serializer[Any]):
    """What to compact, and how. Values are taken as what they are; a field that is not known is refused."""

    closed = True  # for the OpenAPI document: additionalProperties: false
    policy = serializers.CharField(
        min_length=1, max_length=64, required=False, help_text="Instead of the session's."
    )
    instructions = serializers.CharField(
        max_length=4000,
        allow_blank=True,
        required=False,
        help_text="What the summary should dwell on.",
    )
    up_to_seq = serializers.IntegerField(
        min_value=1, max_value=MAX_SEQ, required=False, help_text="The last message to compact."
    )
    stages = serializers.ListField(
        child=serializers.ChoiceField(STAGES),
        min_length=1,
        required=False,
        help_text="Only these of the policy's stages.",
    )
    wait = serializers.BooleanField(required=False, help_text="Answer when the run has finished.")
    dry_run = serializers.BooleanField(required=False, help_text="Only say what a run would do.")

    def to_internal_value(self, data: Any) -> Any:
        """Refuse what would be coerced."""
        field_types = {
            "policy": str,
            "instructions": str,
            "up_to_seq": int,
            "stages": list,
            "wait": bool,
            "dry_run": bool,
        }
        if isinstance(data, Mapping):
            errors = {
                name: ["Not a valid value."] if name in field_types else ["There is no such field."]
                for name, value in data.items()
                if type(value) is not field_types.get(name)
            }
            if errors:
                raise serializers.ValidationError(errors)
        return super().to_internal_value(data)

    def validate_policy(self, name: str) -> str:
        """Only a policy that is there."""
        if name not in policies.list_policies():
            raise serializers.ValidationError("There is no compaction policy of this name.")
        return name


def get_own_session_id(request: Request, session_id: UUID) -> UUID:
    """The session's id, if the asker owns it; else it is 404."""
    if (
        not backend_registry.get_backend()
        .list_session_ids(request.user)
        .filter(pk=session_id)
        .exists()
    ):
        raise Http404
    return session_id


def _list_own_runs(request: Request) -> QuerySet[CompactionRun]:
    return CompactionRun.objects.filter(
        session_id__in=backend_registry.get_backend().list_session_ids(request.user)
    ).order_by("-created_at", "-id")


class SessionScopedView(GenericAPIView[Any]):
    """A session that was deleted while it was asked about is as one that never was."""

    def handle_exception(self, exc: Exception) -> Response:
        """As a 404."""
        return super().handle_exception(Http404() if isinstance(exc, NoSuchSession) else exc)


class CompactView(SessionScopedView):
    """Making room by hand."""

    serializer_class = CompactSerializer

    @extend_schema(
        operation_id="compact_session",
        responses={
            200: RunSerializer,
            202: RunSerializer,
            409: OpenApiResponse(
                description="A run that was asked for otherwise is open; `detail` names it."
            ),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Ask for a run, or wait for it, or only see what it would do. Too little to compact is a skipped run that says why.

        A run that is open already stands for this one, unless this one has wishes of its own: with `wait` it then comes after that.
        """
        get_own_session_id(request, session_id)
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        options = dict(serializer.validated_data)
        wait, dry_run = options.pop("wait", False), options.pop("dry_run", False)
        if dry_run:
            return Response(
                RunSerializer(_call_engine(engine.preview_run, session_id, **options)).data
                | {"id": None}
            )
        start_run = engine.compact_now if wait else engine.request_run
        run = _call_engine(start_run, session_id, trigger=CompactionRun.Trigger.MANUAL, **options)
        return Response(RunSerializer(run).data, status=202 if run.status in OPEN_STATUSES else 200)


def _call_engine(
    operation: Callable[..., CompactionRun], *args: Any, **options: Any
) -> CompactionRun:
    try:
        return operation(*args, **options)
    except queue.RunConflict as error:
        raise OpenRunProblem(str(error)) from None
    except PolicyError as error:
        raise serializers.ValidationError({error.field: [error.message]}) from None


class RunListView(SessionScopedView):
    """A session's runs, the newest first."""

    serializer_class = RunSerializer

    @extend_schema(
        operation_id="list_compactions",
        parameters=[
            OpenApiParameter(
                "status",
                str,
                enum=CompactionRun.Status.values,
                description="Only runs that stand so.",
            )
        ],
        responses=RunSerializer(many=True),
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """A page of runs."""
        runs = _list_own_runs(request).filter(session_id=get_own_session_id(request, session_id))
        status = request.query_params.get("status")
        if status is not None:
            if status not in CompactionRun.Status.values:
                raise serializers.ValidationError(
                    {"status": [f"One of {', '.join(CompactionRun.Status.values)}."]}
                )
            runs = runs.filter(status=status)
        return self.get_paginated_response(
            self.get_serializer(self.paginate_queryset(runs), many=True).data
        )


class RunDetailView(SessionScopedView):
    """One run."""

    serializer_class = RunSerializer

    @extend_schema(operation_id="read_compaction")
    def get(self, request: Request, run_id: UUID) -> Response:
        """The run as it is now."""
        return Response(
            self.get_serializer(get_object_or_404(_list_own_runs(request), pk=run_id)).data
        )


class RewindView(SessionScopedView):
    """Taking a run back."""

    serializer_class = RunSerializer

    @extend_schema(
        operation_id="rewind_compaction",
        request=None,
        parameters=[IF_MATCH],
        responses={
            200: RunSerializer,
            409: OpenApiResponse(description="It changed nothing, or was undone before."),
            412: OpenApiResponse(
                description="The context is not at the version that If-Match names."
            ),
        },
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Go back to what the model saw before this run."""
        run = get_object_or_404(_list_own_runs(request), pk=run_id)
        try:
            run = engine.rewind_run(run, base_version=_check_if_match(request, run.session_id))
        except engine.NotRewindable as error:
            raise NotRewindableProblem(str(error)) from None
        except StaleTranscript as error:
            raise ContextChangedProblem(str(error)) from None
        return Response(self.get_serializer(run).data)


def _check_if_match(request: Request, session_id: UUID) -> int | None:
    """The version to go back from, or None when the client has no condition. Raises the 412 problem when it is not the present one."""
    if_match, facts = (
        request.headers.get("If-Match", "*").strip(),
        backend_registry.get_backend().load_session_facts(session_id),
    )
    if if_match == "*" or facts is None:
        return None
    if str(facts.version) not in {tag.strip().strip('"') for tag in if_match.split(",")}:
        raise ContextChangedProblem(
            f"The context is at version {facts.version}, which If-Match does not name."
        )
    return facts.version


class BreakdownSerializer(serializers.Serializer[Any]):
    """What the tokens of the next request are spent on."""

    system_prompt = serializers.IntegerField()
    summary = serializers.IntegerField()
    conversation_history = serializers.IntegerField()
    current_prompt = serializers.IntegerField()
    tool_definitions = serializers.IntegerField()
    file_attachments = serializers.IntegerField()


class ContextSerializer(serializers.Serializer[Any]):
    """How full the window is, in tokens; null where the window is unknown."""

    estimated_input_tokens = serializers.IntegerField()
    available_input_tokens = serializers.IntegerField(allow_null=True)
    context_window = serializers.IntegerField(allow_null=True)
    threshold_tokens = serializers.IntegerField(allow_null=True)
    usage_ratio = serializers.FloatField(allow_null=True)
    should_compact = serializers.BooleanField()
    level = serializers.ChoiceField(["ok", "warning", "critical"], allow_null=True)
    source = serializers.ChoiceField(["provider", "estimated"])  # type: ignore[assignment]
    message_count = serializers.IntegerField()
    live_message_count = serializers.IntegerField()
    breakdown = BreakdownSerializer()
    policy = serializers.CharField()
    automatic = serializers.ChoiceField(
        ["on", "off", "waiting", "stopped"], help_text="Whether runs start by themselves."
    )
    compacting = serializers.BooleanField(help_text="A summary is being written.")


class PolicySerializer(serializers.Serializer[Any]):
    """A policy with all its knobs, in groups."""

    name = serializers.CharField()
    knobs = serializers.DictField()


class PoliciesSerializer(serializers.Serializer[Any]):
    """All of them, on one page."""

    results = PolicySerializer(many=True)
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


class ContextUsageView(SessionScopedView):
    """How full the window is."""

    @extend_schema(operation_id="read_context", parameters=[ETAG], responses=ContextSerializer)
    def get(self, request: Request, session_id: UUID) -> Response:
        """Tokens of the next request against the window; nulls where the window is unknown."""
        context = session_context.load_session_context(get_own_session_id(request, session_id))
        if context is None:
            raise NoSuchSession(str(session_id))
        return Response(
            usage.describe_usage(context), headers={"ETag": f'"{context.facts.version}"'}
        )


class PolicyListView(APIView):
    """The compaction policies."""

    @extend_schema(operation_id="list_policies", responses=PoliciesSerializer)
    def get(self, request: Request) -> Response:
        """Every policy that a session may name, with all its knobs."""
        rows = [
            {"name": name, "knobs": policy.to_dict()}
            for name, policy in policies.list_policies().items()
        ]
        return Response({"results": rows, "next": None, "previous": None})

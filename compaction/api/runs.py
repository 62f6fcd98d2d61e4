"""Compaction runs: request one, list them, read one, go back to before one."""

from collections.abc import Callable
from uuid import UUID

from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.accounts.rights import select_policies
from chatcore.base.rest import conditions
from chatcore.base.rest.fields import (
    StrictBooleanField,
    StrictIntegerField,
    StrictSerializer,
    StrictTextField,
)
from chatcore.base.rest.problems import InvalidFieldError, Problem
from chatcore.context.revisions import StaleContext
from compaction import policies
from compaction.api.session_scope import (
    SessionScopedView,
    get_owned_session_id,
    load_context_version,
)
from compaction.core.knobs import PolicyError
from compaction.core.policy import STAGES
from compaction.models import MAX_SEQ, OPEN_STATUSES, CompactionRun, ModelCall
from compaction.runs import engine, history, queue
from compaction.sessions.facts import list_session_ids
from compaction.summaries.model_calls import ModelNotUsable, find_summary_model

Trigger = CompactionRun.Trigger


class RunSerializer(serializers.ModelSerializer[CompactionRun]):
    """A compaction: first the job, then its record.

    Tokens are those of the context. `cost` is in the currency of the models' prices.
    """

    id = serializers.UUIDField(
        allow_null=True, help_text="Null for a dry run, which is not stored."
    )
    session = serializers.UUIDField(source="session_id")
    stages_used = serializers.ListField(child=serializers.CharField())
    summary_before = serializers.CharField(allow_null=True, read_only=True)
    summary_after = serializers.CharField(allow_null=True, read_only=True)
    edits = serializers.ListField(child=serializers.DictField())
    targets = serializers.ListField(
        child=serializers.DictField(),
        help_text="Each changed message: seq, role, tool, method, chars_before, chars_after and "
        "percent_saved.",
    )
    state_after = serializers.DictField(
        help_text="The structured state and memory after the run; `forgotten` if a message that it "
        "covered was deleted."
    )
    verification = serializers.DictField(
        help_text="What the summary's checks found: `checks`, their names; `findings`, each with "
        "check, text and action (refused, dropped, added); `extract`, why it is no summary; "
        "`lasting`, how many lines the model named, how many were kept, and the tokens of that."
    )
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
            "summary_model",
            "provider_calls",
            "attempts",
            "input_tokens",
            "cached_tokens",
            "output_tokens",
            "cost",
            "error",
            "reason",
            "instructions",
            "created_at",
            "started_at",
            "finished_at",
            "duration_ms",
            "expected_seconds",
            "edits",
            "targets",
            "state_after",
            "verification",
        )
        read_only_fields = fields


class CompactSerializer(StrictSerializer):
    """What to compact, and how."""

    policy = StrictTextField(
        min_length=1,
        max_length=64,
        required=False,
        trim_whitespace=True,
        help_text="In place of the session's policy.",
    )
    instructions = StrictTextField(
        max_length=4000,
        allow_blank=True,
        required=False,
        trim_whitespace=True,
        help_text="What the summary should pay attention to.",
    )
    up_to_seq = StrictIntegerField(
        min_value=1, max_value=MAX_SEQ, required=False, help_text="The last message to compact."
    )
    summary_model = StrictTextField(
        min_length=1,
        max_length=200,
        required=False,
        trim_whitespace=True,
        help_text="The language model that writes the summary of this run, `name` or "
        "`provider/name`, in place of the session's.",
    )
    stages = serializers.ListField(
        child=serializers.ChoiceField(STAGES),
        min_length=1,
        required=False,
        help_text="Use only these of the policy's stages.",
    )
    replace = StrictBooleanField(
        required=False,
        help_text="Write the summary in force anew, from the messages. It is replaced in one act, "
        "when the new one is there; up_to_seq is then the end of the old one.",
    )
    wait = StrictBooleanField(required=False, help_text="Answer when the run has ended.")
    dry_run = StrictBooleanField(required=False, help_text="Only show what a run would do.")

    def validate_policy(self, name: str) -> str:
        """Refuse a policy that does not exist."""
        names = select_policies(self.context["request"].user.pk, [name])
        if not names or name not in policies.list_policies():
            raise serializers.ValidationError("There is no compaction policy of this name.")
        return name

    def validate_summary_model(self, name: str) -> str:
        """Return the full name of the model. Refuse one that the user cannot choose."""
        try:
            return find_summary_model(self.context["request"].user, name)
        except ModelNotUsable as error:
            raise serializers.ValidationError(str(error)) from None


class CompactView(SessionScopedView):
    """Compaction by hand."""

    serializer_class = CompactSerializer

    @extend_schema(
        operation_id="compact_session",
        responses={
            200: RunSerializer,
            202: RunSerializer,
            409: OpenApiResponse(
                description="A run with other options is open; `detail` names it."
            ),
            429: OpenApiResponse(
                description="Too many by hand in the last minute, or no call is allowed now."
            ),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Request a run, wait for it, or see what it would do.

        If there is too little to compact, the run is `skipped` and says why. A session has one open
        run at most: it is also the answer to a request without options of its own. A request with
        options gets 409, or with `wait` runs after it.
        """
        get_owned_session_id(request, session_id)
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        options = dict(serializer.validated_data)
        should_wait = options.pop("wait", False)
        if options.pop("replace", False):
            options |= _choose_base(session_id)
        if options.pop("dry_run", False):
            preview = _call_engine(engine.preview_run, session_id, **options)
            return Response(RunSerializer(preview).data | {"id": None})
        try:
            queue.use_allowance(session_id, user_pk=request.user.pk)
        except queue.TooManyRuns as error:
            raise Problem(
                429, "too_many_compactions", str(error), retry_after=error.retry_after
            ) from None
        start_run = engine.compact_now if should_wait else engine.request_run
        run = _call_engine(start_run, session_id, trigger=Trigger.MANUAL, **options)
        return Response(RunSerializer(run).data, status=202 if run.status in OPEN_STATUSES else 200)


class RunListView(SessionScopedView):
    """A session's runs, newest first."""

    serializer_class = RunSerializer

    @extend_schema(
        operation_id="list_compactions",
        parameters=[
            OpenApiParameter(
                "status",
                str,
                enum=CompactionRun.Status.values,
                description="Only runs of this status.",
            )
        ],
        responses=RunSerializer(many=True),
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return a page of runs."""
        session_id = get_owned_session_id(request, session_id)
        runs = _list_owned_runs(request).filter(session_id=session_id)
        status = request.query_params.get("status")
        if status is not None:
            if status not in CompactionRun.Status.values:
                names = ", ".join(CompactionRun.Status.values)
                raise InvalidFieldError("status", f"One of {names}.")
            runs = runs.filter(status=status)
        page = self.paginate_queryset(runs)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class RunDetailView(SessionScopedView):
    """One run."""

    serializer_class = RunSerializer

    @extend_schema(operation_id="read_compaction")
    def get(self, request: Request, run_id: UUID) -> Response:
        """Return the run."""
        return Response(self.get_serializer(get_owned_run(request, run_id)).data)


class RewindView(SessionScopedView):
    """Going back to the context before a run."""

    serializer_class = RunSerializer

    @extend_schema(
        operation_id="rewind_compaction",
        request=None,
        parameters=[conditions.IF_MATCH],
        responses={
            200: RunSerializer,
            409: OpenApiResponse(description="It changed nothing, or it is undone already."),
        }
        | conditions.CONTEXT_CHANGED_RESPONSES,
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Go back to what the model saw before this run."""
        run = get_owned_run(request, run_id)
        base_version = conditions.check_if_match(request, load_context_version(run.session_id))
        try:
            run = engine.rewind_run(run, base_version=base_version)
        except engine.NotRewindable as error:
            raise Problem(409, "not_rewindable", str(error)) from None
        except StaleContext:
            # Another change was installed after the version was compared.
            version = load_context_version(run.session_id)
            raise conditions.build_context_changed_problem(version) from None
        return Response(self.get_serializer(run).data)


class CancelRunView(SessionScopedView):
    """The cancellation of a run."""

    serializer_class = RunSerializer

    @extend_schema(
        operation_id="cancel_compaction",
        request=None,
        responses={200: RunSerializer, 409: OpenApiResponse(description="It has ended already.")},
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Stop an open run; the context stays as it is. Automatic runs wait for a while."""
        run = get_owned_run(request, run_id)
        if not engine.cancel_run(run):
            raise Problem(409, "not_running", "The run has ended already.")
        run.refresh_from_db()
        return Response(self.get_serializer(run).data)


def _choose_base(session_id: UUID) -> dict[str, object]:
    """Return the options of a run that replaces the summary in force. Raises the 409 problem."""
    try:
        version, last_seq = history.find_base(session_id)
    except history.NothingToReplace as error:
        raise Problem(409, "nothing_to_replace", str(error)) from None
    return {"from_version": version, "up_to_seq": last_seq}


def _call_engine(
    operation: Callable[..., CompactionRun], *args: object, **options: object
) -> CompactionRun:
    """Return the run of an operation of the engine. Raises the problem for its errors."""
    try:
        return operation(*args, **options)
    except queue.RunConflict as error:
        raise Problem(409, "compaction_running", str(error)) from None
    except PolicyError as error:
        raise serializers.ValidationError({error.field: [error.message]}) from None


def _list_owned_runs(request: Request) -> QuerySet[CompactionRun]:
    own_ids = list_session_ids(request.user)
    own_runs = CompactionRun.objects.filter(session_id__in=own_ids)
    return own_runs.with_summaries().order_by("-created_at", "-id")


def get_owned_run(request: Request, run_id: UUID) -> CompactionRun:
    """Return a run of one of the user's sessions. Raises Http404."""
    return get_object_or_404(_list_owned_runs(request), pk=run_id)


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

"""The ledger: what was said and stays word for word. Read it, and change it by hand."""

from collections.abc import Mapping
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.base.keeping import refuse_lost_text
from chatcore.base.rest import conditions
from chatcore.base.rest.fields import (
    StrictBooleanField,
    StrictIntegerField,
    StrictSerializer,
    StrictTextField,
)
from chatcore.base.rest.problems import InvalidFieldError
from compaction.api.session_scope import (
    SessionScopedView,
    get_owned_session_id,
    load_owned_context,
)
from compaction.memory.core.ledger.corrections import (
    Place,
    find_corrected,
    find_forgotten,
    get_place,
)
from compaction.memory.core.ledger.lines import LINE_CHARS
from compaction.memory.core.verify.completion import VERBATIM_HEADING
from compaction.memory.ledger import changes, missing, rules, store
from compaction.memory.models import LedgerLine
from compaction.memory.source_messages import find_message_seq, map_message_ids

NO_LEDGER_DETAIL = "The session's policy has no ledger."


class LedgerLineSerializer(serializers.ModelSerializer[LedgerLine]):
    """A line of the ledger.

    `message` is the id of the message it was said in and `seq` that message's number; null if a
    person wrote the line. `superseded_by` is the number of the message that said otherwise.
    `corrected_by` and `forgotten_by` are the ids of the messages that correct what the line says
    and that ask to forget it. `rule` is the id of the standing rule that was made of the line, if
    it holds always. `holds` says how long the line holds: for one `answer`, for one `task`, or
    `always`; empty if no model has said it.
    """

    message = serializers.SerializerMethodField()
    corrected_by = serializers.SerializerMethodField()
    forgotten_by = serializers.SerializerMethodField()
    rule = serializers.SerializerMethodField()

    class Meta:
        model = LedgerLine
        fields = (
            "id",
            "kind",
            "text",
            "message",
            "seq",
            "role",
            "status",
            "superseded_by",
            "corrected_by",
            "forgotten_by",
            "holds",
            "pinned",
            "is_edited",
            "rule",
            "created_at",
        )
        read_only_fields = fields

    def get_message(self, line: LedgerLine) -> int | None:
        """Return the id of the message, from the ids that the view has loaded for its page."""
        message_ids: dict[int, int] = self.context["message_ids"]
        return None if line.seq is None else message_ids.get(line.seq)

    def get_corrected_by(self, line: LedgerLine) -> int | None:
        """Return the id of the message that corrects the line."""
        return self._find_change(line, "corrected")

    def get_forgotten_by(self, line: LedgerLine) -> int | None:
        """Return the id of the message that asks to forget what the line says."""
        return self._find_change(line, "forgotten")

    def _find_change(self, line: LedgerLine, name: str) -> int | None:
        seqs: dict[Place, int] = self.context[name]
        seq = None if line.seq is None else seqs.get(get_place(store.to_core_line(line)))
        return None if seq is None else self.context["message_ids"].get(seq)

    def get_rule(self, line: LedgerLine) -> int | None:
        """Return the id of the standing rule, from those that the view has loaded."""
        rule_ids: dict[int, int] = self.context["rule_ids"]
        return rule_ids.get(line.pk)


class ChangedLineSerializer(StrictSerializer):
    """What a user changes of a line."""

    kind = serializers.ChoiceField(LedgerLine.Kind.choices, required=False)
    text = StrictTextField(max_length=LINE_CHARS, trim_whitespace=True, required=False)
    status = serializers.ChoiceField(LedgerLine.Status.choices, required=False)
    pinned = StrictBooleanField(required=False, help_text="Pinned lines are sent first.")


class NewLineSerializer(ChangedLineSerializer):
    """A line that a user writes."""

    kind = serializers.ChoiceField(LedgerLine.Kind.choices)
    text = StrictTextField(max_length=LINE_CHARS, trim_whitespace=True)
    message = StrictIntegerField(
        required=False, allow_null=True, help_text="The id of the message that says it."
    )


class LedgerView(SessionScopedView):
    """The ledger of a session."""

    serializer_class = NewLineSerializer

    @extend_schema(
        operation_id="list_ledger",
        parameters=[
            OpenApiParameter("status", str, enum=LedgerLine.Status.values),
            OpenApiParameter("kind", str, enum=LedgerLine.Kind.values),
        ],
        responses=LedgerLineSerializer(many=True),
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return a page of lines, in the order in which they were written down."""
        session_id = get_owned_session_id(request, session_id)
        lines = store.select_distinct_lines(session_id).order_by("id")
        lines = _filter_lines(request, lines, "status", LedgerLine.Status.values)
        lines = _filter_lines(request, lines, "kind", LedgerLine.Kind.values)
        page = self.paginate_queryset(lines) or []
        return self.get_paginated_response(serialize_lines(session_id, list(page)))

    @extend_schema(
        operation_id="add_ledger_line",
        parameters=[conditions.ENTITY_TAG],
        responses={201: LedgerLineSerializer},
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Write a line. It is sent from the next request on."""
        policy = load_owned_context(request, session_id).policy
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if not policy.ledger.ratio:
            raise InvalidFieldError("text", NO_LEDGER_DETAIL)
        fields = dict(serializer.validated_data)
        message_id = fields.pop("message", None)
        if message_id is not None:
            fields["seq"] = _find_seq(session_id, message_id)
        try:
            line = changes.add_line(session_id, fields)
        except changes.LedgerFull:
            detail = f"There are already {store.MAX_LINES} lines. Delete some first."
            raise InvalidFieldError("text", detail) from None
        return _respond_with_line(line, status=201)


class LedgerLineView(SessionScopedView):
    """One line of the ledger."""

    serializer_class = ChangedLineSerializer

    @extend_schema(
        operation_id="read_ledger_line",
        parameters=[conditions.ENTITY_TAG],
        responses=LedgerLineSerializer,
    )
    def get(self, request: Request, session_id: UUID, line_id: int) -> Response:
        """Return a line."""
        session_id = get_owned_session_id(request, session_id)
        try:
            return _respond_with_line(changes.load_line(session_id, line_id))
        except changes.NoSuchLine:
            raise Http404 from None

    @extend_schema(
        operation_id="edit_ledger_line",
        parameters=[conditions.IF_UNCHANGED, conditions.ENTITY_TAG],
        responses={200: LedgerLineSerializer} | conditions.CHANGED_RESPONSES,
    )
    def patch(self, request: Request, session_id: UUID, line_id: int) -> Response:
        """Change, pin or drop a line, from the next request on.

        What is recognized later never changes a line that was edited, and a dropped line does not
        come back.
        """
        session_id = get_owned_session_id(request, session_id)
        serializer = self.get_serializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data

        def check(line: LedgerLine) -> None:
            self._check_unchanged(line)
            self._refuse_lost_words(line, values.get("text", line.text))

        try:
            line = changes.change_line(session_id, line_id, values, check=check)
        except changes.NoSuchLine:
            raise Http404 from None
        return _respond_with_line(line)

    @extend_schema(
        operation_id="delete_ledger_line",
        parameters=[conditions.IF_UNCHANGED],
        responses={204: None} | conditions.CHANGED_RESPONSES,
    )
    def delete(self, request: Request, session_id: UUID, line_id: int) -> Response:
        """Delete a line. It does not come back, although its message still says it."""
        session_id = get_owned_session_id(request, session_id)

        def check(line: LedgerLine) -> None:
            self._check_unchanged(line)
            self._refuse_lost_words(line, "")

        try:
            changes.delete_line(session_id, line_id, check=check)
        except changes.NoSuchLine:
            raise Http404 from None
        return Response(status=204)

    def _refuse_lost_words(self, line: LedgerLine, text: str) -> None:
        refuse_lost_text(self.request.user.pk, line.text, text)

    def _check_unchanged(self, line: LedgerLine) -> None:
        if conditions.has_condition(self.request):
            representation = serialize_lines(line.session_id, [line])[0]
            conditions.check_entity_tag(self.request, representation)


def _respond_with_line(line: LedgerLine, *, status: int = 200) -> Response:
    representation = serialize_lines(line.session_id, [line])[0]
    headers = conditions.build_entity_headers(representation)
    return Response(representation, status=status, headers=headers)


def _filter_lines(
    request: Request, lines: QuerySet[LedgerLine], name: str, values: list[str]
) -> QuerySet[LedgerLine]:
    """Return the lines with the value that the query wants. Raises the 400 problem for others."""
    value = request.query_params.get(name)
    if value is None:
        return lines
    if value not in values:
        raise InvalidFieldError(name, f"One of {', '.join(values)}.")
    return lines.filter(**{name: value})


def _find_seq(session_id: UUID, message_id: int) -> int:
    seq = find_message_seq(session_id, message_id)
    if seq is None:
        raise InvalidFieldError("message", "The session has no such message.")
    return seq


def serialize_lines(session_id: UUID, lines: list[LedgerLine]) -> list[dict[str, object]]:
    """Return lines as REST shows them."""
    seqs = {line.seq for line in lines if line.seq is not None}
    all_lines = store.load_lines(session_id) if seqs else []
    corrected, forgotten = find_corrected(all_lines), find_forgotten(all_lines)
    context = {
        "message_ids": map_message_ids(
            session_id, seqs | {*corrected.values(), *forgotten.values()}
        ),
        "corrected": corrected,
        "forgotten": forgotten,
        "rule_ids": rules.map_rule_ids(lines),
    }
    serializer = LedgerLineSerializer(lines, many=True, context=context)
    rows: list[dict[str, object]] = list(serializer.data)
    return rows


class MissingSerializer(serializers.Serializer[Mapping[str, object]]):
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

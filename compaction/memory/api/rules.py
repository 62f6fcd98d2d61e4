"""Standing rules: what a user wants in every session. Only users make them."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.base.keeping import refuse_lost_text
from chatcore.base.rest import conditions
from chatcore.base.rest.fields import (
    StrictBooleanField,
    StrictIntegerField,
    StrictSerializer,
    StrictTextField,
    body_rules,
)
from chatcore.base.rest.problems import InvalidFieldError
from compaction.api.session_scope import SessionScopedView, get_owned_session_id
from compaction.memory.core.ledger.lines import LINE_CHARS
from compaction.memory.ledger import rules
from compaction.memory.ledger.changes import NoSuchLine
from compaction.memory.models import LedgerLine, StandingRule


class RuleSerializer(serializers.ModelSerializer[StandingRule]):
    """A rule that stands in every session of the user, under every policy.

    `line` is the line of a session's ledger that it was lifted from, and `session` that session;
    both are null if the user wrote the rule, or if the line is gone. `left_out_of` has the sessions
    that it does not reach, because the user lets them do without the rules.
    """

    session = serializers.UUIDField(source="line.session_id", default=None, allow_null=True)
    left_out_of = serializers.SerializerMethodField()
    _left_out_of: list[UUID] | None = None

    class Meta:
        model = StandingRule
        fields = ("id", "kind", "text", "line", "session", "left_out_of", "created_at")
        read_only_fields = fields

    def get_left_out_of(self, rule: StandingRule) -> list[UUID]:
        """Return the ids of the sessions that do without the rules."""
        if self._left_out_of is None:  # the same for each rule of a page
            sessions = rules.list_sessions_without(rule.owner_id)
            self._left_out_of = [session.pk for session in sessions]
        return self._left_out_of


class ChangedRuleSerializer(StrictSerializer):
    """What a user changes of a rule."""

    kind = serializers.ChoiceField(LedgerLine.Kind.choices, required=False)
    text = StrictTextField(max_length=LINE_CHARS, trim_whitespace=True, required=False)


@body_rules(
    **{
        "if": {"required": ["line"]},
        "then": {"maxProperties": 1},
        "else": {"required": ["text"]},
    }
)
class NewRuleSerializer(ChangedRuleSerializer):
    """A line of a ledger that is to hold always, or a rule that a user writes."""

    line = StrictIntegerField(
        required=False, help_text="The id of the line to lift; then nothing else is given."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, object]:
        """Refuse a line together with a text, and neither of them."""
        if ("line" in attrs) == ("text" in attrs):
            raise InvalidFieldError("text", "Either a line or a text is needed.")
        if "line" in attrs and "kind" in attrs:
            raise InvalidFieldError("kind", "A line has its own kind.")
        return attrs


class RuleListView(GenericAPIView[StandingRule]):
    """The user's standing rules."""

    serializer_class = NewRuleSerializer

    @extend_schema(operation_id="list_rules", responses=RuleSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Return a page of the user's rules, in the order in which they were made."""
        page = self.paginate_queryset(_select_rules(request).order_by("id")) or []
        return self.get_paginated_response(RuleSerializer(page, many=True).data)

    @extend_schema(
        operation_id="add_rule",
        parameters=[conditions.ENTITY_TAG],
        responses={201: RuleSerializer},
    )
    def post(self, request: Request) -> Response:
        """Make a line of a ledger a standing rule ("always"), or write one.

        Every session of the user sends it from its next request on, under every policy, apart from
        those in `left_out_of`.
        """
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = {"kind": LedgerLine.Kind.RULE, **serializer.validated_data}
        try:
            if "line" in fields:
                rule = rules.lift_line(request.user, fields["line"])
            else:
                rule = rules.add_rule(request.user, fields)
        except NoSuchLine:
            raise InvalidFieldError("line", "No session of yours has such a line.") from None
        except rules.TooManyRules:
            detail = f"There are already {rules.MAX_RULES} rules. Drop some first."
            raise InvalidFieldError("text", detail) from None
        return _respond_with_rule(rule, status=201)


class RuleView(GenericAPIView[StandingRule]):
    """One standing rule."""

    serializer_class = ChangedRuleSerializer
    lookup_url_kwarg = "rule_id"

    def get_queryset(self) -> QuerySet[StandingRule]:
        """Return the user's own rules."""
        return _select_rules(self.request)

    @extend_schema(
        operation_id="get_rule", parameters=[conditions.ENTITY_TAG], responses=RuleSerializer
    )
    def get(self, request: Request, rule_id: int) -> Response:
        """Return the rule."""
        return _respond_with_rule(self.get_object())

    @extend_schema(
        operation_id="edit_rule",
        parameters=[conditions.IF_UNCHANGED, conditions.ENTITY_TAG],
        responses={200: RuleSerializer} | conditions.CHANGED_RESPONSES,
    )
    @transaction.atomic
    def patch(self, request: Request, rule_id: int) -> Response:
        """Change the rule, in each session from its next request on."""
        self.get_object()
        serializer = self.get_serializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        rule = self._lock_unchanged_rule(rule_id)
        self._refuse_lost_words(rule, serializer.validated_data.get("text", rule.text))
        for name, value in serializer.validated_data.items():
            setattr(rule, name, value)
        rule.save(update_fields=[*serializer.validated_data])
        return _respond_with_rule(rule)

    @extend_schema(
        operation_id="drop_rule",
        parameters=[conditions.IF_UNCHANGED],
        responses={204: None} | conditions.CHANGED_RESPONSES,
    )
    @transaction.atomic
    def delete(self, request: Request, rule_id: int) -> Response:
        """Drop the rule, in each session from its next request on."""
        rule = self._lock_unchanged_rule(rule_id)
        self._refuse_lost_words(rule, "")
        rule.delete()
        return Response(status=204)

    def _refuse_lost_words(self, rule: StandingRule, text: str) -> None:
        refuse_lost_text(rule.owner_id, rule.text, text)

    def _lock_unchanged_rule(self, rule_id: int) -> StandingRule:
        """Return the rule, locked. Raises Http404, and the 412 problem."""
        rows = self.get_queryset().select_for_update(of=("self",))
        rule = get_object_or_404(rows, pk=rule_id)
        conditions.check_entity_tag(self.request, RuleSerializer(rule).data)
        return rule


class SessionRulesSerializer(StrictSerializer):
    """Whether the user's standing rules hold in a session.

    `left_out` is true in a session that does without them.
    """

    left_out = StrictBooleanField()


class SessionRulesView(SessionScopedView):
    """Whether the user's standing rules hold in a session."""

    serializer_class = SessionRulesSerializer

    @extend_schema(operation_id="get_session_rules")
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return whether the session does without the rules."""
        session_id = get_owned_session_id(request, session_id)
        return Response({"left_out": rules.are_left_out(session_id)})

    @extend_schema(operation_id="edit_session_rules")
    def patch(self, request: Request, session_id: UUID) -> Response:
        """Let the session do without the rules, or not, from its next request on."""
        session_id = get_owned_session_id(request, session_id)
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        rules.set_left_out(session_id, serializer.validated_data["left_out"])
        return Response(serializer.data)


def _respond_with_rule(rule: StandingRule, *, status: int = 200) -> Response:
    representation = RuleSerializer(rule).data
    headers = conditions.build_entity_headers(representation)
    return Response(representation, status=status, headers=headers)


def _select_rules(request: Request) -> QuerySet[StandingRule]:
    return StandingRule.objects.filter(owner=request.user.pk).select_related("line")

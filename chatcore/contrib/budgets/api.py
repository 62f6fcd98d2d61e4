"""What calls of language models used and cost: for oneself, and for everyone with a right."""

import datetime

from django.conf import settings
from django.contrib.auth import get_user_model
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatcore.accounts.spending import NO_SESSION
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.budgets import limits, sums
from chatcore.contrib.budgets.models import Budget

RIGHT = "budgets.view_everyones_usage"
EVERYONE = "*"

DATE = {"type": "string", "format": "date"}
USAGE_PARAMETERS = [
    OpenApiParameter("from", DATE, description="The first day (UTC). Without it: from the start."),
    OpenApiParameter("to", DATE, description="The last day (UTC). Without it: today."),
    OpenApiParameter("by", {"type": "string", "enum": sorted(sums.GROUPINGS), "default": "day"}),
    OpenApiParameter(
        "user",
        {"type": "string"},
        description=f'A name, or "{EVERYONE}" for everyone; needs the right {RIGHT}.',
    ),
]


class UsageTotalSerializer(serializers.Serializer[sums.UsageTotal]):
    """Calls added up. `cost` is what is known of it, without `unpriced_calls`.

    `summary_saving` is what sending the older messages would have cost, as far as the model's
    window takes them; `cost` includes what the summaries cost.
    """

    calls = serializers.IntegerField()
    unpriced_calls = serializers.IntegerField()
    input_tokens = serializers.IntegerField(help_text="With cache reads and writes.")
    cache_read_tokens = serializers.IntegerField()
    cache_write_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    recalled_tokens = serializers.IntegerField()
    spared_tokens = serializers.IntegerField()
    cost = serializers.FloatField()
    recall_cost = serializers.FloatField(help_text="The part of the cost for recall.")
    cache_saving = serializers.FloatField()
    summary_saving = serializers.FloatField()
    estimated_cost = serializers.FloatField(
        help_text="Of calls that run now or that nobody counted, as budgets count them."
    )


class UsageRowSerializer(UsageTotalSerializer):
    """The calls of one day, model, session, purpose, user or group; null: of none of these."""

    key = serializers.SerializerMethodField()
    title = serializers.SerializerMethodField(help_text="Of a session that is still there.")

    def get_key(self, total: sums.UsageTotal) -> str | None:
        """Return what the calls have in common."""
        return None if total.key in (None, NO_SESSION) else str(total.key)

    def get_title(self, total: sums.UsageTotal) -> str | None:
        """Return the session's title."""
        titles: dict[str, str] = self.context["titles"]
        return titles.get(str(total.key))


class BudgetSerializer(serializers.Serializer[limits.BudgetState]):
    """A budget that holds for the user, and what is spent of it."""

    whose = serializers.CharField()
    amount = serializers.FloatField(source="budget.amount")
    period = serializers.ChoiceField(Budget.Period.choices, source="budget.period")
    cost = serializers.FloatField(help_text="What is spent of it.")
    start = serializers.DateField()
    end = serializers.DateField(help_text="The first day of the next period (UTC).")
    is_spent = serializers.BooleanField(help_text="True: new messages are refused.")
    is_almost_spent = serializers.BooleanField(help_text="True: a warning is due.")
    detail = serializers.CharField(source="describe")


class UsageSerializer(serializers.Serializer[dict[str, object]]):
    """What was used and spent, and the budgets."""

    currency = serializers.CharField()
    total = UsageTotalSerializer()
    rows = UsageRowSerializer(many=True)
    budgets = BudgetSerializer(many=True)


class UsageView(APIView):
    """What calls of language models used and cost."""

    @extend_schema(
        operation_id="read_usage", parameters=USAGE_PARAMETERS, responses=UsageSerializer
    )
    def get(self, request: Request) -> Response:
        """Return the user's usage by day, or by something else, and the budgets that hold."""
        grouping = request.query_params.get("by", "day")
        if grouping not in sums.GROUPINGS:
            raise InvalidFieldError("by", f"One of {', '.join(sorted(sums.GROUPINGS))}.")
        owner_id = _find_owner(request)
        rows = sums.select_usage(
            start=_parse_day(request, "from"), end=_parse_day(request, "to"), owner_id=owner_id
        )
        totals = sums.add_up_by(rows, grouping)
        titles = sums.load_titles(totals, request.user.pk) if grouping == "session" else {}
        body = {
            "currency": settings.CHATCORE["CURRENCY"],
            "total": sums.add_up(rows),
            "rows": totals,
            "budgets": limits.list_budgets(owner_id or request.user.pk),
        }
        return Response(UsageSerializer(body, context={"titles": titles}).data)


def _find_owner(request: Request) -> object:
    """Return the key of the user whose usage is asked for; None: everyone's."""
    name = request.query_params.get("user")
    if name is None or name == request.user.get_username():
        return request.user.pk
    if not request.user.has_perm(RIGHT):
        raise InvalidFieldError("user", "You may only see your own usage.")
    if name == EVERYONE:
        return None
    user_model = get_user_model()
    user = user_model.objects.filter(**{user_model.USERNAME_FIELD: name}).first()
    if user is None:
        raise InvalidFieldError("user", "There is no user of this name.")
    return user.pk


def _parse_day(request: Request, name: str) -> datetime.date | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise InvalidFieldError(name, "A day, as in 2026-11-23.") from None

"""The admin pages of usage and budgets."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action

from chatcore.admin.base import ChatcoreAdmin, ReadOnlyAdmin, find_people
from chatcore.contrib.budgets import months
from chatcore.contrib.budgets.limits import read_states
from chatcore.contrib.budgets.models import COST_UNIT, Budget, UsageSum


@admin.register(UsageSum)
class UsageSumAdmin(ReadOnlyAdmin):
    sidebar = ("costs", "coins")
    list_display = (
        "day",
        "owner",
        "model",
        "purpose",
        "calls",
        "input_tokens",
        "cache_read_tokens",
        "output_tokens",
        "show_cost",
        "show_estimated_cost",
        "unpriced_calls",
    )
    list_filter = ("day",)
    narrow_filters = ("purpose",)
    narrow_lookups = ("day__gte", "owner__id__exact")
    sortable_by = ()
    list_select_related = ("owner",)
    search_fields = ("owner__username",)
    search_help_text = "The beginning of a person's name, or an address."
    ordering = ("-pk",)
    actions_list = ("show_month",)

    @action(description=_("A month by user"), url_path="month", permissions=["view"])
    def show_month(self, request: HttpRequest) -> HttpResponse:
        """Show what each user, group or model used in a month, or send it as CSV."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.GET.get("format") == "csv":
            return months.export_month(request)
        context = self.admin_site.each_context(request) | {
            "title": _("Usage of a month"),
            "opts": self.opts,
            **months.describe_month(request),
        }
        return TemplateResponse(request, "budgets/month.html", context)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[UsageSum], search_term: str
    ) -> tuple[QuerySet[UsageSum], bool]:
        """Find the people first, and then theirs by an index."""
        if not search_term:
            return queryset, False
        return queryset.filter(owner__in=find_people(search_term)), False

    @admin.display(description="Cost", ordering="cost_units")
    def show_cost(self, row: UsageSum) -> str:
        return f"{row.cost:.4f} {settings.CHATCORE['CURRENCY']}"

    @admin.display(description="Estimated", ordering="estimated_units")
    def show_estimated_cost(self, row: UsageSum) -> str:
        return f"{row.estimated_units * COST_UNIT:.4f}"


@admin.register(Budget)
class BudgetAdmin(ChatcoreAdmin):
    sidebar = ("costs", "gauge")
    list_display = ("__str__", "period", "amount", "show_spent", "warning_percent", "is_active")
    list_filter = ("period", "is_active")
    list_select_related = ("user", "group")
    autocomplete_fields = ("user",)

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Read what is spent of all budgets of the page at once."""
        budgets = super().get_changelist_instance(request)
        for state in read_states(budgets.result_list):
            state.budget.state = state  # type: ignore[attr-defined]
        return budgets

    @admin.display(description="Spent")
    def show_spent(self, budget: Any) -> str:
        state = budget.state
        return f"{state.cost:.2f} {settings.CHATCORE['CURRENCY']} since {state.start}"

"""The admin pages of usage and budgets."""

from django.conf import settings
from django.contrib import admin

from chatcore.admin.read_only import ReadOnlyAdmin
from chatcore.models import Budget, UsageSum
from chatcore.spending.budgets import read_states


@admin.register(UsageSum)
class UsageSumAdmin(ReadOnlyAdmin):
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
        "unpriced_calls",
    )
    list_filter = ("purpose", "day", "model")
    list_select_related = ("owner",)
    search_fields = ("owner__username",)
    ordering = ("-day", "-pk")

    @admin.display(description="Cost", ordering="cost_units")
    def show_cost(self, row: UsageSum) -> str:
        return f"{row.cost:.4f} {settings.CHATCORE['CURRENCY']}"


@admin.register(Budget)
class BudgetAdmin(admin.ModelAdmin):
    list_display = ("__str__", "period", "amount", "show_spent", "warning_percent", "is_active")
    list_filter = ("period", "is_active")
    list_select_related = ("user", "group")
    autocomplete_fields = ("user",)
    list_per_page = 50

    @admin.display(description="Spent")
    def show_spent(self, budget: Budget) -> str:
        state = read_states([budget])[0]
        return f"{state.cost:.2f} {settings.CHATCORE['CURRENCY']} since {state.start}"

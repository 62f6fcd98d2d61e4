"""Refuse a call when a budget is spent, and say how much of each is left."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db.models import Q, Sum
from django.utils import timezone

from chatcore.models import Budget, UsageSum
from chatcore.models.spending import COST_UNIT
from chatcore.rest.commits import NOTHING_STORED

CENT = Decimal("0.01")


class BudgetSpent(Exception):
    """A budget of the user is spent; the text is for the user.

    `retry_after` is in seconds, until its next period begins.
    """

    def __init__(self, text: str, *, retry_after: int) -> None:
        super().__init__(text)
        self.retry_after = retry_after


@dataclass(frozen=True, kw_only=True)
class BudgetState:
    """A budget, and what has been spent of it since its period began, on `start` (UTC)."""

    budget: Budget
    cost: Decimal
    start: datetime.date
    end: datetime.date  # the first day of the next period

    @property
    def is_spent(self) -> bool:
        """True if nothing is left."""
        return self.cost >= self.budget.amount

    @property
    def is_almost_spent(self) -> bool:
        """True if people are to be warned."""
        return self.cost >= self.budget.amount * self.budget.warning_percent / 100

    @property
    def percent(self) -> int:
        """How much of it is spent, from 0 to 100."""
        if not self.budget.amount:
            return 100
        return min(100, int(self.cost * 100 / self.budget.amount))

    @property
    def whose(self) -> str:
        """Say whose budget it is, as in `your budget`."""
        if self.budget.user_id:
            return "Your budget"
        if self.budget.group:
            return f"The budget of the group {self.budget.group.name}"
        return "The budget of this server"

    def describe(self) -> str:
        """Say in a sentence how much is spent, and when a new period begins."""
        period = "today" if self.budget.period == Budget.Period.DAY else "this month"
        currency = settings.CHATCORE["CURRENCY"]
        cost = self.cost.quantize(CENT, ROUND_HALF_UP)
        return (
            f"{self.whose} for {period} is {self.budget.amount} {currency}, and {cost} {currency}"
            f" of it are spent. It begins anew on {self.end.isoformat()} (UTC)."
        )


def require_budget(user_id: Any) -> None:
    """Raise BudgetSpent if a budget of the user, of a group of theirs, or of everyone is spent."""
    for state in list_budgets(user_id):
        if state.is_spent:
            begins = datetime.datetime.combine(state.end, datetime.time(), datetime.UTC)
            seconds = (begins - timezone.now()).total_seconds()
            text = f"{state.describe()} {NOTHING_STORED}"
            raise BudgetSpent(text, retry_after=max(1, round(seconds)))


def list_budgets(user_id: Any) -> list[BudgetState]:
    """Return the active budgets that hold for a user, with what is spent of each."""
    groups = Group.objects.filter(user=user_id)
    budgets = Budget.objects.filter(
        Q(user=user_id) | Q(group__in=groups) | Q(user=None, group=None), is_active=True
    )
    return read_states(budgets.select_related("group").order_by("id"))


def read_states(budgets: Iterable[Budget]) -> list[BudgetState]:
    """Return budgets with what is spent of each in its current period."""
    today = timezone.now().date()
    return [_read_state(budget, today) for budget in budgets]


def _read_state(budget: Budget, today: datetime.date) -> BudgetState:
    if budget.period == Budget.Period.DAY:
        start, end = today, today + datetime.timedelta(days=1)
    else:
        start = today.replace(day=1)
        end = (start + datetime.timedelta(days=32)).replace(day=1)
    sums = UsageSum.objects.filter(day__gte=start, day__lt=end)
    if budget.user_id:
        sums = sums.filter(owner=budget.user_id)
    elif budget.group_id:
        sums = sums.filter(owner__groups=budget.group_id)
    units = sums.aggregate(units=Sum("cost_units"))["units"] or 0
    return BudgetState(budget=budget, cost=units * COST_UNIT, start=start, end=end)

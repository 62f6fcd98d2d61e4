"""Refuse a call when a budget is spent, and say how much of each is left."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from chatcore.accounts.spending import CallRefused, Reservation
from chatcore.contrib.budgets import records
from chatcore.contrib.budgets.models import ACTIVE_BUDGETS, COST_UNIT, Budget, UsageSum

CENT = Decimal("0.01")
ESTIMATE_SECONDS = 30  # after which an answer that holds a part of a budget may have ended


class BudgetSpent(CallRefused):
    """A budget of the user is spent.

    `retry_after` is in seconds, until its next period begins or an answer may have ended.
    """

    type = "budget_spent"


@dataclass(frozen=True, kw_only=True)
class BudgetState:
    """A budget, and what has been spent of it since its period began, on `start` (UTC).

    `cost` includes `estimated_cost`: of calls that run now, and of those that nobody counted.
    """

    budget: Budget
    cost: Decimal
    estimated_cost: Decimal
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
        estimated_cost = self.estimated_cost.quantize(CENT, ROUND_HALF_UP)
        estimate = ""
        if self.estimated_cost:
            estimate = (
                f", with {estimated_cost} {currency} for answers that are being written or were"
                " not counted"
            )
        return (
            f"{self.whose} for {period} is {self.budget.amount} {currency}, and {cost} {currency}"
            f" of it are spent{estimate}. It begins anew on {self.end.isoformat()} (UTC)."
        )


def require_budget(user_id: object) -> None:
    """Raise BudgetSpent if a budget of the user, of a group of theirs, or of everyone is spent."""
    refuse_spent(list_budgets(user_id))


def reserve_call(call: Reservation, *, may_refuse: bool) -> None:
    """Hold what the call may cost, where a budget of the owner's counts it.

    Raises BudgetSpent if nothing is left of one. Whoever holds a budget's row is alone here, so of
    many calls at once only those are let in that begin with something left. Without budgets nothing
    is written and nobody waits.
    """
    if not ACTIVE_BUDGETS.may_exist():
        return
    owner_budgets = select_budgets(call.owner_id)
    if owner_budgets.exists():
        with transaction.atomic():
            states = read_states(owner_budgets.select_for_update(of=("self",), no_key=True))
            if may_refuse:
                refuse_spent(states)
            call.units = records.estimate_units(call.model, call.expected)
            records.move_estimate(call, call.units)


def refuse_spent(states: Iterable[BudgetState]) -> None:
    """Raise BudgetSpent if one of the budgets is spent."""
    for state in states:
        if state.is_spent:
            begins = datetime.datetime.combine(state.end, datetime.time(), datetime.UTC)
            seconds = (begins - timezone.now()).total_seconds()
            if state.cost - state.estimated_cost < state.budget.amount:
                seconds = min(seconds, ESTIMATE_SECONDS)
            raise BudgetSpent(state.describe(), retry_after=max(1, round(seconds)))


def list_budgets(user_id: object) -> list[BudgetState]:
    """Return the active budgets that hold for a user, with what is spent of each."""
    if not ACTIVE_BUDGETS.may_exist():
        return []
    return read_states(select_budgets(user_id).select_related("group"))


def select_budgets(user_id: Any) -> QuerySet[Budget]:
    """Select the active budgets that hold for a user, in the order in which they are locked."""
    groups = Group.objects.filter(user=user_id)
    budgets = Budget.objects.filter(
        Q(user=user_id) | Q(group__in=groups) | Q(user=None, group=None), is_active=True
    )
    return budgets.order_by("id")


def read_states(budgets: Iterable[Budget]) -> list[BudgetState]:
    """Return budgets with what is spent of each in its current period.

    The sums are read for all budgets of a kind at once: of users, of groups, of everyone.
    """
    today = timezone.now().date()
    rows = list(budgets)
    units: dict[object, tuple[int, int]] = {}
    for (period, column), keys in _group_keys(rows).items():
        start, end = _find_period(period, today)
        sums = UsageSum.objects.filter(day__gte=start, day__lt=end)
        totals = {"known": Sum("cost_units"), "estimated": Sum("estimated_units")}
        if column:
            sums = sums.filter(**{f"{column}__in": keys})
            rows_by_key: Iterable[Any] = sums.order_by().values_list(column).annotate(**totals)
        else:
            total = sums.aggregate(**totals)
            rows_by_key = [(None, total["known"], total["estimated"])]
        for key, known, estimated in rows_by_key:
            units[period, column, key] = (known or 0, estimated or 0)
    return [_build_state(budget, units, today) for budget in rows]


def _find_scope(budget: Budget) -> tuple[str, object]:
    """Return the column of the sums that a budget is about, and its value; none for everyone."""
    if budget.user_id:
        return "owner", budget.user_id
    return ("owner__groups", budget.group_id) if budget.group_id else ("", None)


def _group_keys(budgets: Iterable[Budget]) -> dict[tuple[str, str], list[object]]:
    keys: dict[tuple[str, str], list[object]] = {}
    for budget in budgets:
        column, key = _find_scope(budget)
        keys.setdefault((budget.period, column), []).append(key)
    return keys


def _find_period(period: str, today: datetime.date) -> tuple[datetime.date, datetime.date]:
    if period == Budget.Period.DAY:
        return today, today + datetime.timedelta(days=1)
    start = today.replace(day=1)
    return start, (start + datetime.timedelta(days=32)).replace(day=1)


def _build_state(
    budget: Budget, units: dict[object, tuple[int, int]], today: datetime.date
) -> BudgetState:
    start, end = _find_period(budget.period, today)
    known, estimated = units.get((budget.period, *_find_scope(budget)), (0, 0))
    return BudgetState(
        budget=budget,
        cost=(known + estimated) * COST_UNIT,
        estimated_cost=estimated * COST_UNIT,
        start=start,
        end=end,
    )

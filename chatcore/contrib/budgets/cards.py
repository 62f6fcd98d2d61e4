"""The cards of the admin's first page: money by day, and budgets that are nearly spent."""

import datetime
from collections.abc import Iterator
from decimal import Decimal

from django.conf import settings
from django.db.models import F
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chatcore.admin.overview import MAX_ROWS, build_link
from chatcore.contrib.budgets import sums
from chatcore.contrib.budgets.limits import read_states
from chatcore.contrib.budgets.models import Budget
from chatcore.extension import Card

MONEY_DAYS = 14
MAX_BUDGETS = 100  # of these the states are read, those of groups and of everyone first


def list_cards(request: HttpRequest) -> Iterator[Card]:
    """Yield the cards that this person has rights for."""
    if request.user.has_perm("budgets.view_usagesum"):
        yield _sum_money()
    if request.user.has_perm("budgets.view_budget"):
        yield _list_budgets()


def _sum_money() -> Card:
    today = timezone.now().date()
    start = today - datetime.timedelta(days=MONEY_DAYS - 1)
    totals = {total.key: total for total in sums.add_up_by(sums.select_usage(start=start), "day")}
    largest = max((total.cost for total in totals.values()), default=Decimal(0)) or Decimal(1)
    currency = settings.CHATCORE["CURRENCY"]
    rows = []
    for age in range(MONEY_DAYS):
        day = today - datetime.timedelta(days=age)
        cost = totals[day].cost if day in totals else Decimal(0)
        link = build_link("budgets_usagesum", day__gte=day, day__lt=day + datetime.timedelta(1))
        label = date_format(day, "SHORT_DATE_FORMAT")
        rows.append((label, f"{cost:,.2f}", link, int(cost * 100 / largest)))
    call_count = sum(total.unpriced_calls for total in totals.values())
    warning = _("Calls without a price: %(count)d") % {"count": call_count} if call_count else ""
    return {
        "title": _("Money by day (UTC)"),
        "value": f"{totals[today].cost if today in totals else 0:,.2f} {currency}",
        "link": build_link("budgets_usagesum"),
        "rows": rows,
        "warning": warning,
    }


def _list_budgets() -> Card:
    budgets = Budget.objects.filter(is_active=True).select_related("user", "group")
    states = read_states(budgets.order_by(F("user").asc(nulls_first=True), "pk")[:MAX_BUDGETS])
    warnings = sorted(
        (state for state in states if state.is_almost_spent), key=lambda state: -state.percent
    )
    return {
        "title": _("Budgets near their limit"),
        "value": f"{len(warnings):,}",
        "link": build_link("budgets_budget"),
        "rows": [
            (
                str(state.budget),
                f"{state.percent} %",
                reverse("admin:budgets_budget_change", args=[state.budget.pk]),
                state.percent,
            )
            for state in warnings[:MAX_ROWS]
        ],
    }

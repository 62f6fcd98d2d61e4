"""The numbers of the admin's first page: turns, failures, money, budgets. Each reads one day.

A card is a mapping: `title`, `value`, `link`, `warning`, `note` and `rows` of (label, value, link,
share from 0 to 100 or None). `ADMIN_OVERVIEW` in the settings names the functions that list cards.
"""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Count, F
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from chatcore.context.compactor import get_compactor
from chatcore.models import Budget, Turn
from chatcore.spending import sums
from chatcore.spending.budgets import read_states

MONEY_DAYS = 14
MAX_ROWS = 8
MAX_BUDGETS = 100  # of these the states are read, those of groups and of everyone first
Card = dict[str, Any]


def list_cards(request: HttpRequest) -> Iterator[Card]:
    """Yield the cards that this person has rights for."""
    user = request.user
    if user.has_perm("chatcore.view_turn"):
        yield _count_turns()
        yield _count_failures()
        yield _count_failures_of_providers()
    if user.has_perm("compaction.view_compactionrun"):
        yield from _measure_queue()
    if user.has_perm("chatcore.view_usagesum"):
        yield _sum_money()
    if user.has_perm("chatcore.view_budget"):
        yield _list_budgets()


def build_link(page: str, **query: Any) -> str:
    """Return the address of a list of the admin with filters."""
    address = reverse(f"admin:{page}_changelist")
    return f"{address}?{urlencode(query)}" if query else address


def begin_day() -> datetime.datetime:
    """Return when today began, in the server's time zone."""
    return timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)


def _count_turns() -> Card:
    start = begin_day()
    turns = Turn.objects.filter(started_at__gte=start).order_by()
    counts = dict(turns.values_list("status").annotate(Count("pk")))
    total = sum(counts.values())
    since = {"started_at__gte": start.isoformat()}
    labels = dict(Turn.Status.choices)
    return {
        "title": _("Turns today"),
        "value": f"{total:,}",
        "link": build_link("chatcore_turn", **since),
        "rows": [
            (
                labels[status],
                f"{count:,}",
                build_link("chatcore_turn", status__exact=status, **since),
                count * 100 // total,
            )
            for status, count in sorted(counts.items(), key=lambda item: -item[1])
        ],
    }


def _count_failures() -> Card:
    rows, link = _rank_failures(KT("error__type"), since=begin_day())
    total = sum(count for _reason, count in rows)
    return {
        "title": _("Failures today, by reason"),
        "value": f"{total:,}",
        "link": link,
        "rows": [(reason or _("unknown"), f"{count:,}", link, None) for reason, count in rows],
    }


def _count_failures_of_providers() -> Card:
    name = Coalesce(F("model__provider__name"), F("session__model__provider__name"))
    rows, link = _rank_failures(name, since=timezone.now() - datetime.timedelta(hours=1))
    return {
        "title": _("Providers that failed in the last hour"),
        "value": f"{len(rows):,}",
        "link": build_link("models_registry_provider"),
        "rows": [(provider or _("unknown"), f"{count:,}", link, None) for provider, count in rows],
    }


def _rank_failures(key: Any, *, since: datetime.datetime) -> tuple[list[tuple[Any, int]], str]:
    """Return the most frequent values of `key` with their counts, and a link to the failures."""
    failures = Turn.objects.filter(status=Turn.Status.FAILED, started_at__gte=since).order_by()
    counts = failures.values_list(key).annotate(count=Count("pk")).order_by("-count")[:MAX_ROWS]
    link = build_link(
        "chatcore_turn", status__exact=Turn.Status.FAILED, started_at__gte=since.isoformat()
    )
    return list(counts), link


def _measure_queue() -> Iterator[Card]:
    load = get_compactor().measure_load()
    if load is None:
        return
    page = "compaction_compactionrun"
    yield {
        "title": _("Compaction queue"),
        "value": f"{load.queued:,}",
        "link": build_link(page, status__exact="queued"),
        "rows": [
            (_("Running"), f"{load.running:,}", build_link(page, status__exact="running"), None),
            (
                _("The oldest waits for"),
                _("%(seconds)d seconds") % {"seconds": load.oldest_seconds or 0},
                build_link(page, status__exact="queued"),
                None,
            ),
            (_("Workers alive"), f"{load.workers:,}", "", None),
        ],
        "warning": "" if load.workers else _("No worker lives: nothing is compacted."),
    }


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
        link = build_link("chatcore_usagesum", day__gte=day, day__lt=day + datetime.timedelta(1))
        label = date_format(day, "SHORT_DATE_FORMAT")
        rows.append((label, f"{cost:,.2f}", link, int(cost * 100 / largest)))
    call_count = sum(total.unpriced_calls for total in totals.values())
    warning = _("Calls without a price: %(count)d") % {"count": call_count} if call_count else ""
    return {
        "title": _("Money by day (UTC)"),
        "value": f"{totals[today].cost if today in totals else 0:,.2f} {currency}",
        "link": build_link("chatcore_usagesum"),
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
        "link": build_link("chatcore_budget"),
        "rows": [
            (
                str(state.budget),
                f"{state.percent} %",
                reverse("admin:chatcore_budget_change", args=[state.budget.pk]),
                state.percent,
            )
            for state in warnings[:MAX_ROWS]
        ],
    }

"""The admin's page of a month: what each user, group or model used and cost, also as CSV."""

import calendar
import csv
import datetime

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from chatcore.contrib.budgets import sums
from chatcore.contrib.budgets.sums import UsageTotal

GROUPINGS = ("user", "group", "model")
MONTHS_LISTED = 24
COLUMNS = (
    "calls",
    "input_tokens",
    "cache_read_tokens",
    "output_tokens",
    "cost",
    "estimated_cost",
    "unpriced_calls",
)
SIGNS_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def describe_month(request: HttpRequest) -> dict[str, object]:
    """Return the variables of the page for the month and the grouping that the request names."""
    start, grouping = _read_choice(request)
    rows = sums.select_usage(start=start, end=_find_last_day(start))
    return {
        "month": start,
        "months": _list_months(),
        "grouping": grouping,
        "groupings": GROUPINGS,
        "totals": sums.add_up_by(rows, grouping),
        "total": sums.add_up(rows),
        "currency": settings.CHATCORE["CURRENCY"],
    }


def export_month(request: HttpRequest) -> HttpResponse:
    """Return all rows of the page as a CSV file."""
    start, grouping = _read_choice(request)
    rows = sums.select_usage(start=start, end=_find_last_day(start))
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"usage-{start:%Y-%m}-by-{grouping}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    writer = csv.writer(response)
    writer.writerow(["month", grouping, *COLUMNS, "currency"])
    for total in sums.add_up_by(rows, grouping, limit=None):
        writer.writerow(
            [
                f"{start:%Y-%m}",
                _escape_formula(str(total.key or "")),
                *_list_values(total),
                settings.CHATCORE["CURRENCY"],
            ]
        )
    return response


def _list_values(total: UsageTotal) -> list[str]:
    return [
        f"{getattr(total, name):f}" if "cost" in name else str(getattr(total, name))
        for name in COLUMNS
    ]


def _escape_formula(name: str) -> str:
    """Return a name that a spreadsheet does not take for a formula."""
    return f"'{name}" if name.startswith(SIGNS_OF_FORMULAS) else name


def _read_choice(request: HttpRequest) -> tuple[datetime.date, str]:
    """Return the first day of the month and the grouping; the usual ones for what is not known."""
    grouping = request.GET.get("by", "")
    try:
        start = datetime.date.fromisoformat(f"{request.GET.get('month', '')}-01")
    except ValueError:
        start = timezone.now().date().replace(day=1)
    return start, grouping if grouping in GROUPINGS else GROUPINGS[0]


def _find_last_day(start: datetime.date) -> datetime.date:
    return start.replace(day=calendar.monthrange(start.year, start.month)[1])


def _list_months() -> list[datetime.date]:
    """Return the first days of this month and of those before it."""
    months = [timezone.now().date().replace(day=1)]
    while len(months) < MONTHS_LISTED:
        months.append((months[-1] - datetime.timedelta(days=1)).replace(day=1))
    return months

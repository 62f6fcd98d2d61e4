"""Add up what was used and spent, by day, model, session, purpose, user or group."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet, Sum

from chatcore.accounts.spending import NO_SESSION
from chatcore.contrib.budgets.models import COST_UNIT, UsageSum
from chatcore.models import Session

TOKEN_FIELDS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
SUMMED_FIELDS = (
    "calls",
    "unpriced_calls",
    *TOKEN_FIELDS,
    "recalled_tokens",
    "spared_tokens",
    "cost_units",
    "recall_units",
    "cache_saving_units",
    "summary_saving_units",
    "estimated_units",
)
# What sums can be asked for by, and the field of UsageSum.
GROUPINGS = {
    "day": "day",
    "model": "model",
    "purpose": "purpose",
    "session": "session",
    "user": "owner__username",
    "group": "owner__groups__name",
}
MAX_ROWS = 500


@dataclass(frozen=True, kw_only=True)
class UsageTotal:
    """Calls added up. `key` says which: a day, a model, a session's UUID; None: all of them.

    Costs are in the currency of the prices, without the unpriced calls. `cache_saving` is what the
    same calls would have cost more without a cache. `summary_saving` is what sending the older
    messages would have cost, as far as the model's window takes them. `estimated_cost` is what
    budgets count beside `cost`: of calls that run now, or that nobody counted. What summaries cost
    is part of `cost` and not taken off.
    """

    key: object = None
    calls: int
    unpriced_calls: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    recalled_tokens: int
    spared_tokens: int
    cost: Decimal
    recall_cost: Decimal
    cache_saving: Decimal
    summary_saving: Decimal
    estimated_cost: Decimal


def select_usage(
    *, start: datetime.date | None = None, end: datetime.date | None = None, owner_id: Any = None
) -> QuerySet[UsageSum]:
    """Select the sums of the days from `start` to `end`, both included; of one owner or of all."""
    rows = UsageSum.objects.all()
    if owner_id is not None:
        rows = rows.filter(owner=owner_id)
    if start:
        rows = rows.filter(day__gte=start)
    if end:
        rows = rows.filter(day__lte=end)
    return rows


def add_up(rows: QuerySet[UsageSum]) -> UsageTotal:
    """Return the total of the selected sums."""
    return _build_total(None, rows.aggregate(**_build_sums()))


def add_up_by(
    rows: QuerySet[UsageSum], grouping: str, *, limit: int | None = MAX_ROWS
) -> list[UsageTotal]:
    """Return totals by one of GROUPINGS: days from the newest on, others by cost.

    A user in two groups counts in both.
    """
    field = GROUPINGS[grouping]
    order = ("-day",) if grouping == "day" else ("-sum_cost_units", field)
    groups = rows.order_by().values(field).annotate(**_build_sums()).order_by(*order)
    return [_build_total(group[field], group) for group in groups[:limit]]


def load_titles(totals: Sequence[UsageTotal], owner_id: object) -> dict[str, str]:
    """Return the titles of sessions by the keys of totals, as far as the owner still has them."""
    ids = [total.key for total in totals if total.key and total.key != NO_SESSION]
    sessions = Session.objects.filter(pk__in=ids, owner=owner_id, discard_at=None)
    return {str(pk): title for pk, title in sessions.values_list("pk", "title")}


def _build_sums() -> dict[str, Sum]:
    return {f"sum_{name}": Sum(name, default=0) for name in SUMMED_FIELDS}


def _build_total(key: object, values: dict[str, Any]) -> UsageTotal:
    sums = {name: values[f"sum_{name}"] for name in SUMMED_FIELDS}
    return UsageTotal(
        key=key,
        cost=sums.pop("cost_units") * COST_UNIT,
        recall_cost=sums.pop("recall_units") * COST_UNIT,
        cache_saving=sums.pop("cache_saving_units") * COST_UNIT,
        summary_saving=sums.pop("summary_saving_units") * COST_UNIT,
        estimated_cost=sums.pop("estimated_units") * COST_UNIT,
        **sums,
    )

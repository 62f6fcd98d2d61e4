"""The numbers of the admin's first page: turns and failures. Each reads one day.

A card is a mapping: `title`, `value`, `link`, `warning`, `note` and `rows` of (label, value, link,
share from 0 to 100 or None). Apps bring theirs by `Extension.list_cards`.
"""

import datetime
from collections.abc import Iterator
from urllib.parse import urlencode

from django.db.models import Count, Expression, F
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from chatcore.extension import Card
from chatcore.models import Turn

MAX_ROWS = 8


def list_cards(request: HttpRequest) -> Iterator[Card]:
    """Yield the cards that this person has rights for."""
    user = request.user
    if user.has_perm("chatcore.view_turn"):
        yield _count_turns()
        yield _count_failures()
        yield _count_failures_of_providers()


def build_link(page: str, **query: object) -> str:
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
        "title": _("Providers whose answers failed in the last hour"),
        "value": f"{len(rows):,}",
        "link": build_link("models_registry_provider"),
        "rows": [(provider or _("unknown"), f"{count:,}", link, None) for provider, count in rows],
    }


def _rank_failures(
    key: Expression, *, since: datetime.datetime
) -> tuple[list[tuple[object, int]], str]:
    """Return the most frequent values of `key` with their counts, and a link to the failures."""
    failures = Turn.objects.filter(status=Turn.Status.FAILED, started_at__gte=since).order_by()
    counts = failures.values_list(key).annotate(count=Count("pk")).order_by("-count")[:MAX_ROWS]
    link = build_link(
        "chatcore_turn", status__exact=Turn.Status.FAILED, started_at__gte=since.isoformat()
    )
    return list(counts), link

"""The numbers of compaction on the admin's first page: today's runs, and how good summaries are."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from chatcore.admin.overview import MAX_ROWS, build_link
from chatcore.extension import Card
from compaction.admin.runs import ANY_REASON, WRONG_STATUSES
from compaction.models import MAX_FRUITLESS_RUNS, CompactionRun, ModelCall, SessionState
from compaction.runs.workload import measure_load

DAYS = 7
Status = CompactionRun.Status


def list_cards(request: HttpRequest) -> Iterator[Card]:
    """Yield the cards that this user has rights for."""
    if request.user.has_perm("compaction.view_compactionrun"):
        yield _measure_queue()
        yield _count_runs()
        yield _rate_summaries()
        yield _count_reasons()
        yield _count_failed_calls()
    if request.user.has_perm("compaction.view_sessionstate"):
        yield _count_idle_sessions()


def _measure_queue() -> Card:
    load = measure_load()
    return {
        "title": _("Compaction queue"),
        "value": f"{load.queued:,}",
        "link": build_link("compaction_compactionrun", status__exact="queued"),
        "rows": [
            (
                _("Running"),
                f"{load.running:,}",
                build_link("compaction_compactionrun", status__exact="running"),
                None,
            ),
            (
                _("The oldest waits for"),
                _("%(seconds)d seconds") % {"seconds": load.oldest_seconds or 0},
                build_link("compaction_compactionrun", status__exact="queued"),
                None,
            ),
            (_("Workers alive"), f"{load.workers:,}", "", None),
        ],
        "warning": "" if load.workers else _("No worker lives: nothing is compacted."),
    }


def _count_runs() -> Card:
    start = _begin_today()
    runs = _select_runs(start)
    counts = dict(runs.values_list("status").annotate(Count("pk")))
    total = sum(counts.values())
    with_tokens = Q(status=Status.APPLIED, tokens_after__isnull=False)
    tokens = runs.filter(with_tokens).aggregate(
        before=Sum("tokens_before"), after=Sum("tokens_after")
    )
    note = ""
    if tokens["before"]:
        saved_share = 1 - tokens["after"] / tokens["before"]
        note = _("They made %(percent)d %% room.") % {"percent": round(saved_share * 100)}
    labels = dict(Status.choices)
    return {
        "title": _("Compaction runs today"),
        "value": f"{total:,}",
        "link": _link_runs(start),
        "note": note,
        "rows": [
            (
                labels[status],
                f"{count:,}",
                _link_runs(start, status__exact=status),
                count * 100 // total,
            )
            for status, count in sorted(counts.items(), key=lambda item: -item[1])
        ],
    }


def _rate_summaries() -> Card:
    """Return how many runs of the week ended well, and what became of the others."""
    start = _begin_week()
    names = {
        Status.APPLIED: _("Applied, and kept"),
        Status.FELL_BACK: _("Fell back: made do without a summary"),
        Status.FAILED: _("Failed"),
        Status.REWOUND: _("Undone by somebody"),
    }
    runs = _select_runs(start).filter(status__in=list(names))
    counts = dict(runs.values_list("status").annotate(Count("pk")))
    total = sum(counts.values())
    share = counts.get(Status.APPLIED, 0) / total if total else None
    return {
        "title": _("Summaries that held, in 7 days"),
        "value": "–" if share is None else f"{share:.1%}",
        "link": _link_runs(start),
        "rows": [
            (
                name,
                f"{counts.get(status, 0):,}",
                _link_runs(start, status__exact=status.value),
                counts.get(status, 0) * 100 // total if total else None,
            )
            for status, name in names.items()
        ],
    }


def _count_reasons() -> Card:
    """Return why runs of the week failed or fell back, by how answers of models were refused."""
    start = _begin_week()
    runs = _select_runs(start).filter(status__in=WRONG_STATUSES)
    total = runs.count()
    calls = ModelCall.objects.filter(run__in=runs.values("pk")).exclude(refusal="").order_by()
    counts = dict(calls.values_list("refusal").annotate(runs=Count("run", distinct=True)))
    run_count = calls.aggregate(runs=Count("run", distinct=True))["runs"]
    labels = dict(ModelCall.Refusal.choices)
    rows = [
        (str(labels.get(reason, reason)), f"{count:,}", _link_runs(start, wrong=reason), None)
        for reason, count in sorted(counts.items(), key=lambda item: -item[1])
    ]
    if total > run_count:
        link = _link_runs(start, wrong=ANY_REASON)
        rows.append((_("without an answer that was refused"), f"{total - run_count:,}", link, None))
    return {
        "title": _("Failures of compaction in 7 days, by reason"),
        "value": f"{total:,}",
        "link": _link_runs(start, wrong=ANY_REASON),
        "rows": rows,
    }


def _count_failed_calls() -> Card:
    """Return which models gave summaries no answer in runs of the last hour."""
    start = timezone.now() - timedelta(hours=1)
    calls = ModelCall.objects.filter(
        run__created_at__gte=start, refusal=ModelCall.Refusal.NO_ANSWER
    ).order_by()
    counts = calls.values_list("model").annotate(count=Count("pk")).order_by("-count")
    link = _link_runs(start, wrong=ModelCall.Refusal.NO_ANSWER.value)
    rows = [(model, f"{count:,}", link, None) for model, count in counts[:MAX_ROWS]]
    return {
        "title": _("Models whose summary calls failed in the last hour"),
        "value": f"{sum(count for _model, count in counts):,}",
        "link": link,
        "rows": rows,
    }


def _count_idle_sessions() -> Card:
    """Return how many sessions do not compact by themselves now, and why."""
    counts = {
        "stopped": SessionState.objects.filter(fruitless__gte=MAX_FRUITLESS_RUNS).count(),
        "waiting": SessionState.objects.filter(not_before__gt=Now()).count(),
        "trimming": SessionState.objects.filter(trimming=True).count(),
    }
    names = {
        "stopped": _("The last runs gained nothing"),
        "waiting": _("Wait after a failure"),
        "trimming": _("Failed: requests are trimmed"),
    }
    address = reverse("admin:compaction_sessionstate_changelist")
    return {
        "title": _("Sessions that stopped compacting"),
        "value": f"{counts['stopped']:,}",
        "link": f"{address}?automatic=stopped",
        "rows": [
            (names[reason], f"{count:,}", f"{address}?automatic={reason}", None)
            for reason, count in counts.items()
        ],
    }


def _begin_today() -> datetime:
    return timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)


def _begin_week() -> datetime:
    return _begin_today() - timedelta(days=DAYS - 1)


def _select_runs(start: datetime) -> QuerySet[CompactionRun]:
    return CompactionRun.objects.filter(created_at__gte=start).order_by()


def _link_runs(start: datetime, **query: str) -> str:
    address = reverse("admin:compaction_compactionrun_changelist")
    return f"{address}?{urlencode({**query, 'created_at__gte': start.isoformat()})}"

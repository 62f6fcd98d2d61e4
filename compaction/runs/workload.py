"""Measure the work of all machines: runs that wait or run, and workers that give signs of life."""

from datetime import timedelta

from django.db.models import Count, Min
from django.db.models.functions import Now
from django.utils import timezone

from chatcore.context.compactor import CompactionLoad
from compaction.models import OPEN_STATUSES, CompactionRun, WorkerBeat

SIGN_SECONDS = 60.0  # between two signs of a command
# One that is silent for so long is gone; it may have waited for the database meanwhile.
SILENCE = timedelta(seconds=2.5 * SIGN_SECONDS)
YOUNG = timedelta(seconds=0.8 * SIGN_SECONDS)
FORGET = timedelta(days=1)


def record_sign(name: str) -> None:
    """Note that a worker command lives, and forget those that were silent for a day.

    A young sign is left as it is: each costs the disk two pages, also while nobody does anything.
    """
    if WorkerBeat.objects.filter(name=name, seen_at__gt=Now() - YOUNG).exists():
        return
    WorkerBeat.objects.bulk_create(
        [WorkerBeat(name=name, seen_at=Now())],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["seen_at"],
    )
    WorkerBeat.objects.filter(seen_at__lt=Now() - FORGET).delete()


def remove_sign(name: str) -> None:
    """Note that a worker command ends."""
    WorkerBeat.objects.filter(name=name).delete()


def count_workers() -> int:
    """Return how many worker commands live."""
    return WorkerBeat.objects.filter(seen_at__gte=Now() - SILENCE).count()


def measure_load() -> CompactionLoad:
    """Count open runs and living workers, in two small queries."""
    open_runs = CompactionRun.objects.filter(status__in=OPEN_STATUSES).order_by()
    rows = {
        status: (count, oldest)
        for status, count, oldest in open_runs.values_list("status").annotate(
            Count("pk"), Min("created_at")
        )
    }
    queued_count, oldest = rows.get(CompactionRun.Status.QUEUED.value, (0, None))
    return CompactionLoad(
        queued=queued_count,
        running=rows.get(CompactionRun.Status.RUNNING.value, (0, None))[0],
        oldest_seconds=max(0.0, (timezone.now() - oldest).total_seconds()) if oldest else 0.0,
        workers=count_workers(),
    )

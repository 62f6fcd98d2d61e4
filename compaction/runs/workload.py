"""Measure the work of all machines: runs that wait or run, and workers that give signs of life."""

from django.db.models import Count, Min
from django.utils import timezone

from chatcore.context.compactor import CompactionLoad
from chatcore.models import ServingProcess
from chatcore.serving.processes import count_processes
from compaction.models import OPEN_STATUSES, CompactionRun


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
        workers=count_processes(ServingProcess.Kind.WORKER),
    )

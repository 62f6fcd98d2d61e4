"""What the queue carries: the id of a run to execute, and canaries. The run's row is the truth, a message only wakes a worker."""

import logging
from typing import Any

from django.db import transaction
from django.utils import timezone
from django_q.tasks import async_task

from compaction.models import OPEN_STATUSES, CompactionRun

logger = logging.getLogger(__name__)

EXECUTE_TASK = "compaction.worker.tasks.execute"
MAX_RUN_SECONDS = 1800  # seconds; three calls of a small model on busy cores. Each call has its own, shorter, deadline.


def enqueue(run_id: Any) -> None:
    """Tell the queue of a run, and the run that it was told: both or neither."""
    with transaction.atomic():
        CompactionRun.objects.filter(pk=run_id).update(enqueued_at=timezone.now())
        async_task(EXECUTE_TASK, str(run_id), timeout=MAX_RUN_SECONDS, group="compaction")


def requeue_run(run_id: Any) -> None:
    """The worker that had this run in hand is dead: end its lease, and tell the queue again. Nothing for a run that is over."""
    open_runs = CompactionRun.objects.filter(pk=run_id, status__in=OPEN_STATUSES)
    open_runs.filter(status=CompactionRun.Status.RUNNING).update(lease_until=timezone.now())
    if open_runs.exists():
        enqueue(run_id)


def requeue_waiting_runs() -> None:
    """A cluster died, perhaps with messages on their way: tell the queue of waiting runs again; hearing twice is harmless."""
    for run_id in CompactionRun.objects.filter(status=CompactionRun.Status.QUEUED).values_list(
        "pk", flat=True
    ):
        enqueue(run_id)


def execute(run_id: str) -> str:
    """Execute one run; returns its status. A run that is done, taken, unknown or not yet in turn is no error: it is told of again."""
    from compaction.runs import engine

    try:
        run = engine.execute_run(run_id, obey_worker_limit=True)
    except Exception:
        logger.exception("compaction run %s crashed", run_id)
        raise  # django-q2 keeps it among its failed tasks; the run is claimed again when its lease ends
    return run.status if run else "not claimable"


def canary(token: str) -> str:
    """Come back: the message is gone only after pusher, worker and monitor each did their part."""
    return token

"""Put runs into the queue, and execute what comes out of it.

A message carries only the id of a run. The run's row is the truth, so a message may be lost or
arrive twice: the sweep sends a lost one again, and a second claim finds nothing to claim.

For django-q2's sake: the functions `execute` and `canary` are found by their dotted paths, which
stored messages name. Moving one needs an alias at its old path (`compaction/tasks.py`).
"""

import logging
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from django_q.tasks import async_task

from compaction.models import OPEN_STATUSES, CompactionRun
from compaction.runs import leases

logger = logging.getLogger(__name__)

EXECUTE_TASK = "compaction.worker.tasks.execute"
EXECUTE_TASK_OF_VERSION_0_1 = "compaction.tasks.execute"
CANARY_TASK = "compaction.worker.tasks.canary"
# Seconds; three calls of a small model on a busy machine. Each call has a shorter limit of its own.
MAX_RUN_SECONDS = 1800


def enqueue(run_id: UUID | str) -> None:
    """Send a message for a run, and record in its row that it was sent: both or neither."""
    with transaction.atomic():
        CompactionRun.objects.filter(pk=run_id).update(enqueued_at=Now())
        async_task(EXECUTE_TASK, str(run_id), timeout=MAX_RUN_SECONDS, group="compaction")


def requeue_run(run_id: UUID | str, *, is_innocent: bool = False) -> None:
    """Send a run again whose worker is dead, if it has not ended.

    An innocent one was killed with the cluster, so its death is not counted.
    """
    if is_innocent:
        leases.give_back(run_id)
    else:
        leases.end_lease(run_id)
    if CompactionRun.objects.filter(pk=run_id, status__in=OPEN_STATUSES).exists():
        enqueue(run_id)


def requeue_waiting_runs() -> None:
    """Send all queued runs again, because a cluster may have died with their messages."""
    queued_runs = CompactionRun.objects.filter(status=CompactionRun.Status.QUEUED)
    for run_id in queued_runs.values_list("pk", flat=True):
        enqueue(run_id)


def execute(run_id: str) -> str:
    """Execute one run as a task, and return its status.

    A run that has ended, is claimed, is unknown or exceeds flow.workers is no error. Such a run is
    sent again when there is something to do.
    """
    # Imported here because the engine sends runs to the queue, and so imports this module.
    from compaction.runs import engine

    try:
        run = engine.execute_run(run_id, obey_worker_limit=True)
    except Exception:
        # django-q2 stores the error among its failed tasks, where the admin shows it. The run is
        # claimed again when its lease ends.
        logger.exception("compaction run %s crashed", run_id)
        raise
    return run.status if run else "not claimable"


def canary(token: str) -> str:
    """Do nothing. Its message is gone when pusher, worker and monitor have each done their part."""
    return token

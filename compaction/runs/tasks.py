"""Put runs into the queue, and execute what comes out of it.

A message only wakes a worker, which then executes the run whose turn it is, not the one that the
message names. The run's row is the truth, so a message may be lost or arrive twice: the sweep sends
another, and who is woken for nothing finds nothing to claim.

django-q2 finds `execute` by its dotted path. A message that names a former path fails, and the
sweep sends another.
"""

import logging
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models.functions import Now

from compaction.models import OPEN_STATUSES, CompactionRun
from compaction.runs import leases
from compaction.runs.run_locks import run_locks

logger = logging.getLogger(__name__)

EXECUTE_TASK = "compaction.runs.tasks.execute"
# Seconds; three calls of a small model on a busy machine. Each call has a shorter limit of its own.
MAX_RUN_SECONDS = 1800
MAX_MESSAGES = 64  # that wait at once; more would be of no use, because each wakes any worker
# The end of a run frees a place of its policy and one of its provider, for which two different
# runs may have waited.
FREED_PLACES = 2


def send_run(run_id: UUID | str) -> bool:
    """Note in a run's row that it was sent, and wake a worker. False: the queue is out of reach."""
    try:
        with transaction.atomic():
            CompactionRun.objects.filter(pk=run_id).update(enqueued_at=Now())
            wake_workers(run_id)
    except DatabaseError:
        logger.exception("the queue was not notified of run %s", run_id)
        return False
    return True


def wake_workers(run_id: UUID | str, *, count: int = 1) -> None:
    """Send so many messages, unless MAX_MESSAGES wait already; each wakes a worker for any run."""
    # Imported here because a project without workers has no django_q among its apps.
    from django_q.brokers import get_broker
    from django_q.tasks import async_task

    for _ in range(min(count, MAX_MESSAGES - get_broker().queue_size())):
        async_task(EXECUTE_TASK, str(run_id), timeout=MAX_RUN_SECONDS, group="compaction")


def wake_for_freed_place(run_id: UUID | str) -> None:
    """Wake workers for the runs that may take the place of one that is executed no more."""
    try:
        wake_workers(run_id, count=leases.count_claimable_runs(up_to=FREED_PLACES))
    except DatabaseError:
        logger.exception("the runs that wait for a place of run %s wait for the sweep", run_id)


def requeue_run(run_id: UUID | str, *, is_innocent: bool = False) -> None:
    """Send a run again whose worker is dead, if it has not ended.

    An innocent one was killed with the cluster, so its death is not counted.
    """
    if is_innocent:
        leases.give_back(run_id)
    else:
        leases.take_from_dead(run_id)
    if CompactionRun.objects.filter(pk=run_id, status__in=OPEN_STATUSES).exists():
        send_run(run_id)
    else:
        wake_for_freed_place(run_id)  # the worker died before it could


def execute(run_id: str) -> str:
    """Execute the run whose turn it is as a task, and return its status.

    `run_id` is the run for which the message was sent; it may have its turn later, or have ended.
    """
    # Imported here because the engine sends runs to the queue, and so imports this module.
    from compaction.runs import engine

    try:
        run = engine.execute_next_run(run_locks.acquire_lock)
    except Exception:
        # django-q2 stores the error among its failed tasks, where the admin shows it. The run is
        # claimed again when its lease ends.
        logger.exception("a compaction run crashed, in the task for run %s", run_id)
        raise
    finally:
        run_locks.release_lock()
    return run.status if run else "nothing to claim"

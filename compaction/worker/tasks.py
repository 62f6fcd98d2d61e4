"""Put runs into the queue, and execute what comes out of it.

A message only wakes a worker, which then executes the run whose turn it is, not the one that the
message names. The run's row is the truth, so a message may be lost or arrive twice: the sweep sends
another, and who is woken for nothing finds nothing to claim.

For django-q2's sake: the functions `execute` and `canary` are found by their dotted paths, which
stored messages name. Moving one needs an alias at its old path (`compaction/tasks.py`).
"""

import logging
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

from compaction.models import OPEN_STATUSES, CompactionRun
from compaction.runs import leases, line, wake_ups
from compaction.runs.beats import FEWEST_PLACES, count_places
from compaction.worker.run_locks import run_locks

logger = logging.getLogger(__name__)

EXECUTE_TASK = "compaction.worker.tasks.execute"
CANARY_TASK = "compaction.worker.tasks.canary"
# Seconds; three calls of a small model on a busy machine. Each call has a shorter limit of its own.
MAX_RUN_SECONDS = 1800


def enqueue(run_id: UUID | str) -> None:
    """Put a run in line, note in its row that it was sent, and wake a worker: all or nothing."""
    with transaction.atomic():
        # The line comes before the run, as in a claim.
        line.put_in_line(run_id)
        CompactionRun.objects.filter(pk=run_id).update(enqueued_at=Now())
        wake_workers(run_id)


def wake_workers(run_id: UUID | str, *, count: int = 1) -> None:
    """Send so many messages, unless each worker that is free will find one anyway.

    More would be of no use, and the table of messages is read ten times a second.
    """
    free_messages = OrmQ.objects.filter(key=Conf.PREFIX, lock__lte=timezone.now()).count()
    places = count_places() if free_messages + count > FEWEST_PLACES else FEWEST_PLACES
    for _ in range(min(count, places - free_messages)):
        async_task(EXECUTE_TASK, str(run_id), timeout=MAX_RUN_SECONDS, group="compaction")


def requeue_run(run_id: UUID | str, *, is_innocent: bool = False) -> None:
    """Send a run again whose worker is dead, if it has not ended.

    An innocent one was killed with the cluster, so its death is not counted.
    """
    if is_innocent:
        leases.give_back(run_id)
    else:
        leases.take_from_dead(run_id)
    if CompactionRun.objects.filter(pk=run_id, status__in=OPEN_STATUSES).exists():
        enqueue(run_id)
    else:
        wake_ups.wake_for_freed_place(run_id)  # the worker died before it could


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


def canary(token: str) -> str:
    """Do nothing. Its message is gone when pusher, worker and monitor have each done their part."""
    return token

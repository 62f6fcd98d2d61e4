"""Wake workers when a run waits or a place is free. What is lost here, the sweep does again.

A message wakes any worker, which then claims the run whose turn it is (`line.py`).
"""

import logging
from uuid import UUID

from django.db import DatabaseError

from compaction.runs import line

logger = logging.getLogger(__name__)

# The end of a run frees a place of its policy and one of its provider, for which two different
# runs may have waited.
FREED_PLACES = 2


def send_run(run_id: UUID | str) -> bool:
    """Put a run in line, and wake a worker. Return False when the queue cannot be reached."""
    # Imported here because the worker's tasks execute runs, and so import this module.
    from compaction.worker.tasks import enqueue

    try:
        enqueue(run_id)
    except DatabaseError:
        logger.exception("the queue was not notified of run %s", run_id)
        return False
    return True


def wake_for_freed_place(run_id: UUID | str) -> None:
    """Wake workers for the runs that may take the place of one that is executed no more.

    A message too many is harmless: whoever it wakes finds nothing and sleeps again.
    """
    try:
        kind_count = line.count_claimable_kinds(up_to=FREED_PLACES)
        if kind_count:
            # Imported here for the same reason, and because a project without workers has no tasks.
            from compaction.worker.tasks import wake_workers

            wake_workers(run_id, count=kind_count)
    except DatabaseError:
        logger.exception("the runs that wait for a place of run %s wait for the sweep", run_id)

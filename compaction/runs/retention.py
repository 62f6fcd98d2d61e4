"""Delete the records of runs whose time is over.

What was asked of the model goes after COMPACTION["CALL_DAYS"], the runs that changed nothing after
COMPACTION["RUN_DAYS"]; 0 days keep them for good. A run that changed a context stays as long as its
session, because it can be undone. So does everything that is on hold.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from chatcore.base.databases.batches import SCAN_ROWS, find_old_keys
from chatcore.extension import exclude_kept
from chatcore.sessions.upkeep import find_clock_problem
from compaction.models import CompactionRun, ModelCall

DEFAULT_CALL_DAYS = 30
BATCH_ROWS = 50  # deleted in one transaction, which blocks SQLite's other writers
Status = CompactionRun.Status
FRUITLESS = (Status.SKIPPED, Status.FAILED, Status.FELL_BACK)
RowT = TypeVar("RowT", bound=Model)


def prune_records(*, seconds: float = math.inf) -> bool:
    """Delete what is too old; return False if some of it is left after so many seconds.

    Between two transactions other writers get as much time as the first one took.
    """
    deadline = time.monotonic() + seconds
    for delete in _find_old_records():
        start_time = time.monotonic()
        if start_time >= deadline:
            return False
        with transaction.atomic():
            delete()
        time.sleep(time.monotonic() - start_time)
    return True


def _find_old_records() -> Iterator[Callable[[], object]]:
    """Yield what deletes in one transaction each; nothing while the clock is wrong."""
    if find_clock_problem():
        return
    now = timezone.now()
    if days := settings.COMPACTION.get("CALL_DAYS", DEFAULT_CALL_DAYS):
        for ids in find_old_keys(ModelCall.objects.all(), "ended_at", now - timedelta(days=days)):
            calls = exclude_kept(ModelCall.objects.filter(pk__in=ids), "run__session__owner")
            free_ids = list(calls.values_list("pk", flat=True))
            yield from (rows.delete for rows in _split(ModelCall.objects.all(), free_ids))
    if days := settings.COMPACTION.get("RUN_DAYS", 0):
        for run_ids in _find_fruitless_runs(now - timedelta(days=days)):
            yield from (rows.delete for rows in _split(CompactionRun.objects.all(), run_ids))


def _split(rows: QuerySet[RowT], ids: Sequence[object]) -> Iterator[QuerySet[RowT]]:
    for start in range(0, len(ids), BATCH_ROWS):
        yield rows.filter(pk__in=ids[start : start + BATCH_ROWS])


def _find_fruitless_runs(cutoff: datetime) -> Iterator[list[UUID]]:
    runs = CompactionRun.objects.filter(status__in=FRUITLESS, created_at__lt=cutoff)
    runs = exclude_kept(runs, "session__owner").order_by()
    while ids := list(runs.values_list("pk", flat=True)[:SCAN_ROWS]):
        yield ids

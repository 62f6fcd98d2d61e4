"""Read and delete rows in batches: with short statements, and in many processes at once."""

import time
from collections.abc import Iterator
from datetime import datetime
from typing import TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet

BATCH_ROWS = 250
SCAN_ROWS = 1_000  # read at once
M = TypeVar("M", bound=Model)


def find_old_keys(rows: QuerySet[M], time_field: str, cutoff: datetime) -> Iterator[list[int]]:
    """Yield the keys of the rows from before a time, some of them at once.

    Keys rise with time, so the first page without such a row ends it.
    """
    last_key = 0
    while True:
        page = rows.filter(pk__gt=last_key).order_by("pk").values_list("pk", time_field)[:SCAN_ROWS]
        times = dict(page)
        old_keys = [key for key, moment in times.items() if moment < cutoff]
        if not old_keys:
            return
        last_key = max(times)
        yield old_keys


def read_in_batches(rows: QuerySet[M], key: str = "pk") -> Iterator[M]:
    """Yield rows in the order of a unique column; only some are in memory.

    `iterator()` would hold all of them, because no cursor of the server is used (settings.py).
    """
    rest = rows.order_by(key)
    while True:
        batch = list(rest[:SCAN_ROWS])
        yield from batch
        if len(batch) < SCAN_ROWS:
            return
        rest = rest.filter(**{f"{key}__gt": getattr(batch[-1], key)})


def delete_in_batches(rows: QuerySet[M], *, batch_rows: int | None = None) -> int:
    """Delete the rows of a query with what depends on them. Returns how many of the query.

    Each batch is a short transaction, of BATCH_ROWS unless the rows are large, and a pause as long
    as it took lets other writers through. Rows that another transaction holds are left for the next
    round: two processes that wait for each other's rows would be a deadlock.
    """
    limit = batch_rows or BATCH_ROWS
    count = 0
    while True:
        start = time.perf_counter()
        with transaction.atomic():
            batch = rows.order_by("pk").select_for_update(skip_locked=True, of=("self",))
            keys = list(batch.values_list("pk", flat=True)[:limit])
            rows.model._default_manager.filter(pk__in=keys).delete()
        count += len(keys)
        if len(keys) < limit:
            return count
        time.sleep(time.perf_counter() - start)

"""Delete rows in small batches, for chores that several processes run at once."""

import time
from typing import TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet

BATCH_ROWS = 250
M = TypeVar("M", bound=Model)


def delete_in_batches(rows: QuerySet[M]) -> int:
    """Delete the rows of a query with what depends on them. Returns how many of the query.

    Each batch is a short transaction, and a pause as long as it took lets other writers through.
    Rows that another transaction holds are left for the next round: two processes that wait for
    each other's rows would be a deadlock.
    """
    count = 0
    while True:
        start = time.perf_counter()
        with transaction.atomic():
            batch = rows.order_by("pk").select_for_update(skip_locked=True, of=("self",))
            keys = list(batch.values_list("pk", flat=True)[:BATCH_ROWS])
            rows.model._default_manager.filter(pk__in=keys).delete()
        count += len(keys)
        if len(keys) < BATCH_ROWS:
            return count
        time.sleep(time.perf_counter() - start)

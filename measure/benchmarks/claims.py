"""What it costs to claim the run whose turn it is while 10,000 runs wait, on both databases."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from django.contrib.auth.models import User
from django.db import connection

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import leases
from measure.benchmarks.timing import Row, format_table, measure_median
from tests.support.worker_processes import KINDS, open_database

WAITING = 10_000
CLAIMS = 30
LIMIT = 50.0  # ms


def main() -> int:
    """Measure, print a table, and return 0 when every value is within its limit."""
    rows = [row for kind in KINDS for row in _measure_database(kind)]
    print(format_table(rows))
    return 0 if all(row.is_within_limit for row in rows) else 1


def _measure_database(kind: str) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, open_database(kind, Path(folder)):
        for name, owner_count in (
            ("one owner", 1),
            ("2,000 owners", 2_000),
            ("each its own", WAITING),
        ):
            _fill(owner_count)
            yield _measure(f"{kind}: claim, {WAITING:,} runs of {name}", _claim, 1_000_000)
            yield _measure(f"{kind}: the same, without a place left", _find_nothing, 1)


def _measure(name: str, work: Callable[[], None], places: int) -> Row:
    CompactionRun.objects.update(places=places)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return Row(name=name, value=measure_median(work, times=CLAIMS), limit=LIMIT)


def _claim() -> None:
    run = leases.claim_next_run(lambda _: None)
    assert run is not None


def _find_nothing() -> None:
    assert leases.claim_next_run(lambda _: None) is None


def _fill(owner_count: int) -> None:
    """Let runs of so many owners wait, in place of all earlier ones."""
    CompactionRun.objects.all().delete()
    Session.objects.all().delete()
    User.objects.all().delete()
    users = User.objects.bulk_create(User(username=f"u{i}") for i in range(owner_count))
    sessions = Session.objects.bulk_create(
        Session(owner=users[i % owner_count]) for i in range(WAITING)
    )
    CompactionRun.objects.bulk_create(
        CompactionRun(
            session=session,
            owner_id=session.owner_id,
            trigger="after_response",
            policy="oneclaw",
            provider="local",
        )
        for session in sessions
    )

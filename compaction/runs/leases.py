"""Who works on a run: claimed by one conditional UPDATE, held by a heartbeat, lost to whoever claims it after the lease ends."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from compaction import policies
from compaction.core.groups.conduct import Flow
from compaction.core.knobs import PolicyError
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun

logger = logging.getLogger(__name__)

BEATS_A_LEASE = 3


class Lost(Exception):
    """Another worker has claimed the run, or it was ended: nothing more may be written."""


def claim(run_id: Any, *, in_turn: bool = False) -> CompactionRun | None:
    """Take a queued run, or one whose lease ended. None when it is not there to take; at most one caller gets it.

    `in_turn`: nor when as many runs of its policy are being worked on as the policy allows.
    """
    run = _claimable().filter(pk=run_id).first()
    if run is None:
        return None
    with transaction.atomic():
        if in_turn and not _a_place_is_free(run):
            return None
        now = timezone.now()
        taken = (
            _claimable()
            .filter(pk=run_id, attempts=run.attempts)
            .update(
                status=CompactionRun.Status.RUNNING,
                attempts=F("attempts") + 1,
                started_at=Coalesce("started_at", now),
                lease_until=now + timedelta(seconds=_flow(run).lease_seconds),
            )
        )
    return CompactionRun.objects.filter(pk=run_id).first() if taken else None


def _a_place_is_free(run: CompactionRun) -> bool:
    """Counted while nobody else can claim a run of this policy: the transaction locks all (SQLite) or that name (PostgreSQL)."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtext(%s))", [f"compaction policy {run.policy}"]
            )
    running = CompactionRun.objects.filter(
        policy=run.policy, status=CompactionRun.Status.RUNNING, lease_until__gte=timezone.now()
    )
    return running.exclude(pk=run.pk).count() < _flow(run).workers


def exhausted(run: CompactionRun) -> bool:
    """Whether a claimed run was claimed more often than its policy allows: its workers died each time."""
    return run.attempts > _flow(run).attempts


def mine(run: CompactionRun) -> QuerySet[CompactionRun]:
    """The run, as long as this claim of it holds."""
    return CompactionRun.objects.filter(
        pk=run.pk, status=CompactionRun.Status.RUNNING, attempts=run.attempts
    )


@contextmanager
def kept(run: CompactionRun) -> Iterator[None]:
    """Extend the lease from a thread of its own while work goes on, however long a model takes."""
    done = threading.Event()
    thread = threading.Thread(
        target=_beat,
        args=(run, _flow(run).lease_seconds, done),
        name=f"lease-{run.pk}",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _beat(run: CompactionRun, seconds: float, done: threading.Event) -> None:
    while not done.wait(seconds / BEATS_A_LEASE):
        try:
            mine(run).update(lease_until=timezone.now() + timedelta(seconds=seconds))
        except DatabaseError:
            logger.warning("the lease of run %s was not extended", run.pk, exc_info=True)
        finally:
            connection.close()


def _claimable() -> QuerySet[CompactionRun]:
    abandoned = Q(status=CompactionRun.Status.RUNNING, lease_until__lt=timezone.now())
    return CompactionRun.objects.filter(Q(status=CompactionRun.Status.QUEUED) | abandoned)


def _flow(run: CompactionRun) -> Flow:
    try:
        return policies.from_snapshot(run.policy_snapshot).flow
    except PolicyError:  # stored by another release; the run itself will say so
        return PRESETS[policies.DEFAULT].flow

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
from compaction.core.groups.conduct import FlowKnobs
from compaction.core.knobs import PolicyError
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun

logger = logging.getLogger(__name__)

RENEWALS_PER_LEASE = 3


class RunLeaseLost(Exception):
    """Another worker has claimed the run, or it was ended: nothing more may be written."""


def claim_run(run_id: Any, *, obey_worker_limit: bool = False) -> CompactionRun | None:
    """Take a queued run, or one whose lease ended. None when it is not there to take; at most one caller gets it.

    `in_turn`: nor when as many runs of its policy are being worked on as the policy allows.
    """
    run = _select_claimable_runs().filter(pk=run_id).first()
    if run is None:
        return None
    with transaction.atomic():
        if obey_worker_limit and not _has_free_worker(run):
            return None
        now = timezone.now()
        row_count = (
            _select_claimable_runs()
            .filter(pk=run_id, attempts=run.attempts)
            .update(
                status=CompactionRun.Status.RUNNING,
                attempts=F("attempts") + 1,
                started_at=Coalesce("started_at", now),
                lease_until=now + timedelta(seconds=_load_flow(run).lease_seconds),
            )
        )
    return CompactionRun.objects.filter(pk=run_id).first() if row_count else None


def _has_free_worker(run: CompactionRun) -> bool:
    """Counted while nobody else can claim a run of this policy: the transaction locks all (SQLite) or that name (PostgreSQL)."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtext(%s))", [f"compaction policy {run.policy}"]
            )
    running_runs = CompactionRun.objects.filter(
        policy=run.policy, status=CompactionRun.Status.RUNNING, lease_until__gte=timezone.now()
    )
    return running_runs.exclude(pk=run.pk).count() < _load_flow(run).workers


def has_exhausted_attempts(run: CompactionRun) -> bool:
    """Whether a claimed run was claimed more often than its policy allows: its workers died each time."""
    return run.attempts > _load_flow(run).attempts


def select_claimed_run(run: CompactionRun) -> QuerySet[CompactionRun]:
    """The run, as long as this claim of it holds."""
    return CompactionRun.objects.filter(
        pk=run.pk, status=CompactionRun.Status.RUNNING, attempts=run.attempts
    )


@contextmanager
def keep_lease(run: CompactionRun) -> Iterator[None]:
    """Extend the lease from a thread of its own while work goes on, however long a model takes."""
    stop_event = threading.Event()
    thread = threading.Thread(
        target=_renew_lease,
        args=(run, _load_flow(run).lease_seconds, stop_event),
        name=f"lease-{run.pk}",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        stop_event.set()
        thread.join()


def _renew_lease(run: CompactionRun, seconds: float, stop_event: threading.Event) -> None:
    while not stop_event.wait(seconds / RENEWALS_PER_LEASE):
        try:
            select_claimed_run(run).update(lease_until=timezone.now() + timedelta(seconds=seconds))
        except DatabaseError:
            logger.warning("the lease of run %s was not extended", run.pk, exc_info=True)
        finally:
            connection.close()


def _select_claimable_runs() -> QuerySet[CompactionRun]:
    expired_lease_filter = Q(status=CompactionRun.Status.RUNNING, lease_until__lt=timezone.now())
    return CompactionRun.objects.filter(
        Q(status=CompactionRun.Status.QUEUED) | expired_lease_filter
    )


def _load_flow(run: CompactionRun) -> FlowKnobs:
    try:
        return policies.parse_policy_snapshot(run.policy_snapshot).flow
    except PolicyError:  # stored by another release; the run itself will say so
        return PRESETS[policies.DEFAULT_POLICY].flow

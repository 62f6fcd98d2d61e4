"""Compaction runs, from the asking to the end. The run's row is the truth; the queue only wakes a worker."""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Unpack
from uuid import UUID

from django.db import DatabaseError, close_old_connections, transaction
from django.db.models import Q
from django.utils import timezone

from compaction.backends import registry as backend_registry
from compaction.backends.base import StaleTranscript
from compaction.models import OPEN_STATUSES, CompactionRun
from compaction.runs import execution, leases, lifecycle
from compaction.runs.queue import RunConflict, RunOptions, find_or_create_run, load_run_context
from compaction.sizing.session_context import NoSuchSession
from compaction.summaries import state
from compaction.summaries.summarizer import simulate_summary

logger = logging.getLogger(__name__)

Trigger = CompactionRun.Trigger
WAIT_SECONDS = 60.0  # for a run that another worker holds
POLL_SECONDS = 0.2
RESEND_DELAY = timedelta(seconds=60)


class NotRewindable(Exception):
    """The run changed nothing, or what it changed has been undone."""


def request_run(session_id: UUID, *, trigger: str, **options: Unpack[RunOptions]) -> CompactionRun:
    """Ask for a run and tell the queue of it on commit. The session's open run, if it can stand for it: two triggers make one run.

    `wishes`: policy, overrides, instructions, up_to_seq, stages. Raises RunIsOpen where the open run was asked for otherwise,
    UnknownPolicy and PolicyError for a policy that cannot be used, NoSuchSession.
    """
    run, is_new = find_or_create_run(session_id, trigger=trigger, options=options)
    if is_new:
        transaction.on_commit(lambda: _enqueue_run(run.pk), robust=True)
    return run


def compact_now(session_id: UUID, *, trigger: str, **options: Unpack[RunOptions]) -> CompactionRun:
    """Ask for a run and execute it here; where another worker holds the session's run, wait for it, 60 seconds at most.

    An open run that was asked for otherwise comes first, then this one. The run as it then is. Raises what `request_run` raises,
    RunIsOpen only after those 60 seconds; a failing summary is no exception but a status.
    """
    while True:
        try:
            run, _ = find_or_create_run(session_id, trigger=trigger, options=options)
        except RunConflict as conflict:
            if (
                not execute_run(conflict.run.pk)
                and wait_for_run(conflict.run, seconds=WAIT_SECONDS).status in OPEN_STATUSES
            ):
                raise
        else:
            return execute_run(run.pk) or wait_for_run(run, seconds=WAIT_SECONDS)


def execute_run(run_id: Any, *, obey_worker_limit: bool = False) -> CompactionRun | None:
    """Claim a run and bring it to its end. None when it is not to be had, or was lost to another worker.

    `in_turn`: only while fewer runs of its policy are worked on than flow.workers allows; it stays queued otherwise.
    """
    run = leases.claim_run(run_id, obey_worker_limit=obey_worker_limit)
    if run is None:
        return None
    try:
        with leases.keep_lease(run):
            execution.process_run(run)
    except leases.RunLeaseLost:
        if CompactionRun.objects.filter(pk=run.pk).exists():
            logger.warning("compaction run %s was taken over by another worker", run.pk)
        else:
            logger.info("compaction run %s was deleted with its session", run.pk)
        return None
    finally:
        _wake_next(run)
    return CompactionRun.objects.filter(pk=run.pk).first()


def wait_for_run(
    run: CompactionRun, *, seconds: float, should_wait: Callable[[], bool] = lambda: True
) -> CompactionRun:
    """Wait until another worker has ended a run, so many seconds at most and as long as it is `wanted`; the run as it then is.

    No connection is held meanwhile. Raises NoSuchSession when run and session are gone.
    """
    deadline = time.monotonic() + seconds
    while True:
        latest_run = CompactionRun.objects.filter(pk=run.pk).first()
        if latest_run is None:
            raise NoSuchSession(str(run.session_id))
        if (
            latest_run.status not in OPEN_STATUSES
            or time.monotonic() >= deadline
            or not should_wait()
        ):
            return latest_run
        close_old_connections()  # a pooled one is others' meanwhile
        time.sleep(POLL_SECONDS)


def preview_run(session_id: UUID, **options: Unpack[RunOptions]) -> CompactionRun:
    """What a run by hand would do, without calling a model or storing anything; an unsaved run. The summary's size is a guess."""
    context = load_run_context(session_id, options)
    run = CompactionRun(
        session_id=session_id,
        trigger=Trigger.MANUAL,
        policy=context.policy_name,
        instructions=options.get("instructions", ""),
        up_to_seq=options.get("up_to_seq"),
        only_stages=list(options.get("stages", ())),
    )
    run.boundary_before = context.facts.boundary_seq
    if objection := execution.find_objection(run, context):
        run.status, run.reason = CompactionRun.Status.SKIPPED, objection
        return run
    outcome = execution.propose_outcome(run, context, simulate_summary)[1]
    run.status, run.reason = outcome.status, outcome.reason
    for name, value in lifecycle.build_run_record(outcome).items():
        setattr(run, name, value)
    return run


def rewind_run(run: CompactionRun, *, base_version: int | None = None) -> CompactionRun:
    """Go back to the context before an applied run, undoing what came after it too. Raises NotRewindable, and Stale over another version.

    Automatic runs then wait until the context outgrows the window, or until one is asked for by hand: else the next answer
    would undo the rewind.
    """
    return _rewind_context(run, to_version=run.version_before, base_version=base_version)


def rewind_to_run(run: CompactionRun) -> CompactionRun:
    """Go back to the context as an applied run left it, undoing only what came after it. Raises NotRewindable."""
    return _rewind_context(run, to_version=run.version_after)


def forget_summary(run: CompactionRun) -> None:
    """The whole history of the run's session is sent again; no run is undone by it, and state and memory stay."""
    with transaction.atomic():
        version = backend_registry.get_backend().reset_context(run.session_id)
        backend_registry.get_backend().announce_events(
            run.session_id, ("session.updated", {"context_version": version})
        )


def _rewind_context(
    run: CompactionRun, *, to_version: int | None, base_version: int | None = None
) -> CompactionRun:
    with transaction.atomic():
        applied_runs = CompactionRun.objects.select_for_update().filter(
            session_id=run.session_id, status=CompactionRun.Status.APPLIED
        )
        if to_version is None or not applied_runs.filter(pk=run.pk).exists():
            raise NotRewindable(
                f"The run is {CompactionRun.objects.get(pk=run.pk).status}; only an applied one can be undone."
            )
        facts = backend_registry.get_backend().load_session_facts(run.session_id)
        if facts is None or facts.version <= to_version:
            raise NotRewindable("Nothing came after the run.")
        version = backend_registry.get_backend().rewind_context(
            run.session_id, to_version=to_version
        )
        if base_version not in (None, version - 1):
            raise StaleTranscript(f"The context is at version {version - 1}, not {base_version}.")
        newer_runs = list(
            applied_runs.filter(version_after__gt=to_version).order_by("version_after")
        )
        CompactionRun.objects.filter(pk__in=[newer_run.pk for newer_run in newer_runs]).update(
            status=CompactionRun.Status.REWOUND
        )
        for oldest_run in newer_runs[:1]:
            state.rewind_structured_state(oldest_run)
        backend_registry.get_backend().announce_events(
            run.session_id, ("session.updated", {"context_version": version})
        )
    run.refresh_from_db()
    return run


def resend_lost_runs() -> int:
    """Bring back lost work: tell the queue again of runs it forgot and of runs whose worker died. Returns how many."""
    now = timezone.now()
    notice_filter = Q(enqueued_at=None) | Q(enqueued_at__lt=now - RESEND_DELAY)
    queued_filter = (
        Q(status=CompactionRun.Status.QUEUED, created_at__lt=now - RESEND_DELAY / 2) & notice_filter
    )
    expired_lease_filter = (
        Q(status=CompactionRun.Status.RUNNING, lease_until__lt=now) & notice_filter
    )
    run_ids = list(
        CompactionRun.objects.filter(queued_filter | expired_lease_filter).values_list(
            "pk", flat=True
        )
    )
    return sum(_enqueue_run(run_id) for run_id in run_ids)


def _wake_next(run: CompactionRun) -> None:
    """A place is free: tell the queue of the run of the same policy that has waited longest. Hearing twice is harmless."""
    queued_runs = CompactionRun.objects.filter(
        policy=run.policy, status=CompactionRun.Status.QUEUED
    ).order_by("created_at")
    if next_id := queued_runs.values_list("pk", flat=True).first():
        _enqueue_run(next_id)


def _enqueue_run(run_id: Any) -> bool:
    """Wake a worker; a queue that cannot be told now is told by the next sweep."""
    from compaction.worker.tasks import enqueue

    try:
        enqueue(run_id)
    except DatabaseError:
        logger.exception("the queue was not told of run %s", run_id)
        return False
    return True

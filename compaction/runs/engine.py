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
from compaction.backends.base import Stale
from compaction.models import OPEN, CompactionRun
from compaction.runs import execution, leases, lifecycle
from compaction.runs.queue import RunIsOpen, Wishes, asked_for, standing
from compaction.sizing.session_context import NoSuchSession
from compaction.summaries import state
from compaction.summaries.summarizer import imagined

logger = logging.getLogger(__name__)

Trigger = CompactionRun.Trigger
WAIT_SECONDS = 60.0  # for a run that another worker holds
POLL_SECONDS = 0.2
RESEND_AFTER = timedelta(seconds=60)


class NotRewindable(Exception):
    """The run changed nothing, or what it changed has been undone."""


def request_run(session_id: UUID, *, trigger: str, **wishes: Unpack[Wishes]) -> CompactionRun:
    """Ask for a run and tell the queue of it on commit. The session's open run, if it can stand for it: two triggers make one run.

    `wishes`: policy, overrides, instructions, up_to_seq, stages. Raises RunIsOpen where the open run was asked for otherwise,
    UnknownPolicy and PolicyError for a policy that cannot be used, NoSuchSession.
    """
    run, created = asked_for(session_id, trigger=trigger, wishes=wishes)
    if created:
        transaction.on_commit(lambda: _enqueue(run.pk), robust=True)
    return run


def compact_now(session_id: UUID, *, trigger: str, **wishes: Unpack[Wishes]) -> CompactionRun:
    """Ask for a run and execute it here; where another worker holds the session's run, wait for it, 60 seconds at most.

    An open run that was asked for otherwise comes first, then this one. The run as it then is. Raises what `request_run` raises,
    RunIsOpen only after those 60 seconds; a failing summary is no exception but a status.
    """
    while True:
        try:
            run, _ = asked_for(session_id, trigger=trigger, wishes=wishes)
        except RunIsOpen as other:
            if (
                not execute_run(other.run.pk)
                and awaited(other.run, seconds=WAIT_SECONDS).status in OPEN
            ):
                raise
        else:
            return execute_run(run.pk) or awaited(run, seconds=WAIT_SECONDS)


def execute_run(run_id: Any, *, in_turn: bool = False) -> CompactionRun | None:
    """Claim a run and bring it to its end. None when it is not to be had, or was lost to another worker.

    `in_turn`: only while fewer runs of its policy are worked on than flow.workers allows; it stays queued otherwise.
    """
    run = leases.claim(run_id, in_turn=in_turn)
    if run is None:
        return None
    try:
        with leases.kept(run):
            execution.work(run)
    except leases.Lost:
        if CompactionRun.objects.filter(pk=run.pk).exists():
            logger.warning("compaction run %s was taken over by another worker", run.pk)
        else:
            logger.info("compaction run %s was deleted with its session", run.pk)
        return None
    finally:
        _wake_next(run)
    return CompactionRun.objects.filter(pk=run.pk).first()


def awaited(
    run: CompactionRun, *, seconds: float, wanted: Callable[[], bool] = lambda: True
) -> CompactionRun:
    """Wait until another worker has ended a run, so many seconds at most and as long as it is `wanted`; the run as it then is.

    No connection is held meanwhile. Raises NoSuchSession when run and session are gone.
    """
    deadline = time.monotonic() + seconds
    while True:
        now = CompactionRun.objects.filter(pk=run.pk).first()
        if now is None:
            raise NoSuchSession(str(run.session_id))
        if now.status not in OPEN or time.monotonic() >= deadline or not wanted():
            return now
        close_old_connections()  # a pooled one is others' meanwhile
        time.sleep(POLL_SECONDS)


def preview(session_id: UUID, **wishes: Unpack[Wishes]) -> CompactionRun:
    """What a run by hand would do, without calling a model or storing anything; an unsaved run. The summary's size is a guess."""
    now = standing(session_id, wishes)
    run = CompactionRun(
        session_id=session_id,
        trigger=Trigger.MANUAL,
        policy=now.policy_name,
        instructions=wishes.get("instructions", ""),
        up_to_seq=wishes.get("up_to_seq"),
        only_stages=list(wishes.get("stages", ())),
    )
    run.boundary_before = now.subject.boundary_seq
    if refusal := execution.refusal(run, now):
        run.status, run.reason = CompactionRun.Status.SKIPPED, refusal
        return run
    outcome = execution.propose(run, now, imagined)[1]
    run.status, run.reason = outcome.status, outcome.reason
    for name, value in lifecycle.record(outcome).items():
        setattr(run, name, value)
    return run


def rewind(run: CompactionRun, *, base_version: int | None = None) -> CompactionRun:
    """Go back to the context before an applied run, undoing what came after it too. Raises NotRewindable, and Stale over another version.

    Automatic runs then wait until the context outgrows the window, or until one is asked for by hand: else the next answer
    would undo the rewind.
    """
    return _go_back(run, to_version=run.version_before, base_version=base_version)


def rewind_to(run: CompactionRun) -> CompactionRun:
    """Go back to the context as an applied run left it, undoing only what came after it. Raises NotRewindable."""
    return _go_back(run, to_version=run.version_after)


def forget_summary(run: CompactionRun) -> None:
    """The whole history of the run's session is sent again; no run is undone by it, and state and memory stay."""
    with transaction.atomic():
        version = backend_registry.get().reset(run.session_id)
        backend_registry.get().announce(
            run.session_id, ("session.updated", {"context_version": version})
        )


def _go_back(
    run: CompactionRun, *, to_version: int | None, base_version: int | None = None
) -> CompactionRun:
    with transaction.atomic():
        applied = CompactionRun.objects.select_for_update().filter(
            session_id=run.session_id, status=CompactionRun.Status.APPLIED
        )
        if to_version is None or not applied.filter(pk=run.pk).exists():
            raise NotRewindable(
                f"The run is {CompactionRun.objects.get(pk=run.pk).status}; only an applied one can be undone."
            )
        now = backend_registry.get().subject(run.session_id)
        if now is None or now.version <= to_version:
            raise NotRewindable("Nothing came after the run.")
        version = backend_registry.get().rewind(run.session_id, to_version=to_version)
        if base_version not in (None, version - 1):
            raise Stale(f"The context is at version {version - 1}, not {base_version}.")
        undone = list(applied.filter(version_after__gt=to_version).order_by("version_after"))
        CompactionRun.objects.filter(pk__in=[each.pk for each in undone]).update(
            status=CompactionRun.Status.REWOUND
        )
        for oldest in undone[:1]:
            state.take_back(oldest)
        backend_registry.get().announce(
            run.session_id, ("session.updated", {"context_version": version})
        )
    run.refresh_from_db()
    return run


def sweep() -> int:
    """Bring back lost work: tell the queue again of runs it forgot and of runs whose worker died. Returns how many."""
    now = timezone.now()
    unheard = Q(enqueued_at=None) | Q(enqueued_at__lt=now - RESEND_AFTER)
    forgotten = (
        Q(status=CompactionRun.Status.QUEUED, created_at__lt=now - RESEND_AFTER / 2) & unheard
    )
    abandoned = Q(status=CompactionRun.Status.RUNNING, lease_until__lt=now) & unheard
    lost = list(CompactionRun.objects.filter(forgotten | abandoned).values_list("pk", flat=True))
    return sum(_enqueue(run_id) for run_id in lost)


def _wake_next(run: CompactionRun) -> None:
    """A place is free: tell the queue of the run of the same policy that has waited longest. Hearing twice is harmless."""
    waiting = CompactionRun.objects.filter(
        policy=run.policy, status=CompactionRun.Status.QUEUED
    ).order_by("created_at")
    if next_id := waiting.values_list("pk", flat=True).first():
        _enqueue(next_id)


def _enqueue(run_id: Any) -> bool:
    """Wake a worker; a queue that cannot be told now is told by the next sweep."""
    from compaction.worker.tasks import enqueue

    try:
        enqueue(run_id)
    except DatabaseError:
        logger.exception("the queue was not told of run %s", run_id)
        return False
    return True

"""Compaction runs, from the asking to the end. The run's row is the truth; the queue only wakes a worker."""

import logging
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import DatabaseError, IntegrityError, close_old_connections, transaction
from django.db.models import Q
from django.utils import timezone

from compaction import backends, endings, leases, passes, policies, situation
from compaction.models import OPEN, CompactionRun, open_run_of
from compaction.situation import NoSuchSession
from compaction.summarizer import imagined

logger = logging.getLogger(__name__)

Trigger = CompactionRun.Trigger
WAIT_SECONDS = 60.0  # for a run that another worker holds
POLL_SECONDS = 0.2
RESEND_AFTER = timedelta(seconds=60)


class NotRewindable(Exception):
    """The run changed nothing, or what it changed has been undone."""


def request_run(
    session_id: UUID, *, trigger: str, policy: str | None = None, instructions: str = "", up_to_seq: int | None = None
) -> CompactionRun:
    """Ask for a run and tell the queue of it on commit. The session's open run, if it has one: two triggers make one run.

    Raises UnknownPolicy and PolicyError for a policy that cannot be used, NoSuchSession.
    """
    run, created = _asked_for(session_id, trigger=trigger, policy=policy, instructions=instructions, up_to_seq=up_to_seq)
    if created:
        transaction.on_commit(lambda: _enqueue(run.pk), robust=True)
    return run


def compact_now(
    session_id: UUID, *, trigger: str, policy: str | None = None, instructions: str = "", up_to_seq: int | None = None
) -> CompactionRun:
    """Ask for a run and execute it here; where another worker holds the session's run, wait for it, 60 seconds at most.

    The run as it then is. Raises what `request_run` raises; a failing summary is no exception but a status.
    """
    run, _ = _asked_for(session_id, trigger=trigger, policy=policy, instructions=instructions, up_to_seq=up_to_seq)
    return execute_run(run.pk) or _awaited(run)


def execute_run(run_id: Any) -> CompactionRun | None:
    """Claim a run and bring it to its end. None when it is not to be had, or was lost to another worker."""
    run = leases.claim(run_id)
    if run is None:
        return None
    try:
        with leases.kept(run):
            passes.work(run)
    except leases.Lost:
        if CompactionRun.objects.filter(pk=run.pk).exists():
            logger.warning("compaction run %s was taken over by another worker", run.pk)
        else:
            logger.info("compaction run %s was deleted with its session", run.pk)
        return None
    return CompactionRun.objects.filter(pk=run.pk).first()


def preview(session_id: UUID, *, policy: str | None = None, instructions: str = "", up_to_seq: int | None = None) -> CompactionRun:
    """What a run by hand would do, without calling a model or storing anything; an unsaved run. The summary's size is a guess."""
    chosen = (policy, policies.named(policy)) if policy else None
    now = situation.of(session_id, policy=chosen)
    if now is None:
        raise NoSuchSession(str(session_id))
    run = CompactionRun(
        session_id=session_id, trigger=Trigger.MANUAL, policy=now.policy_name, instructions=instructions, up_to_seq=up_to_seq
    )
    outcome = passes.propose(run, now, imagined)[1]
    run.status, run.reason, run.stages_used = outcome.status, outcome.reason, list(outcome.stages_used)
    run.tokens_before, run.tokens_after = outcome.tokens_before, outcome.tokens_after
    run.messages_compacted = outcome.messages_compacted
    run.boundary_before, run.boundary_after = now.subject.boundary_seq, outcome.boundary_seq
    return run


def rewind(run: CompactionRun) -> CompactionRun:
    """Go back to the context before an applied run, undoing what came after it too. Raises NotRewindable.

    Automatic runs then wait until the context outgrows the window, or until one is asked for by hand: else the next answer
    would undo the rewind.
    """
    with transaction.atomic():
        undone = CompactionRun.objects.select_for_update().filter(session_id=run.session_id, status=CompactionRun.Status.APPLIED)
        if run.version_before is None or not undone.filter(pk=run.pk).exists():
            raise NotRewindable(f"The run is {CompactionRun.objects.get(pk=run.pk).status}; only an applied one can be undone.")
        version = backends.get().rewind(run.session_id, to_version=run.version_before)
        undone.filter(version_after__gt=run.version_before).update(status=CompactionRun.Status.REWOUND)
        backends.get().announce(run.session_id, ("session.updated", {"context_version": version}))
    run.refresh_from_db()
    return run


def sweep() -> int:
    """Bring back lost work: tell the queue again of runs it forgot and of runs whose worker died. Returns how many."""
    now = timezone.now()
    unheard = Q(enqueued_at=None) | Q(enqueued_at__lt=now - RESEND_AFTER)
    forgotten = Q(status=CompactionRun.Status.QUEUED, created_at__lt=now - RESEND_AFTER / 2) & unheard
    abandoned = Q(status=CompactionRun.Status.RUNNING, lease_until__lt=now) & unheard
    lost = list(CompactionRun.objects.filter(forgotten | abandoned).values_list("pk", flat=True))
    return sum(_enqueue(run_id) for run_id in lost)


def _asked_for(
    session_id: UUID, *, trigger: str, policy: str | None, instructions: str, up_to_seq: int | None
) -> tuple[CompactionRun, bool]:
    if trigger == Trigger.MANUAL:
        endings.forgive(session_id)
    chosen = (policy, policies.named(policy)) if policy else None
    existing = open_run_of(session_id)
    if existing:
        return existing, False
    now = situation.of(session_id, policy=chosen)
    if now is None:
        raise NoSuchSession(str(session_id))
    run = CompactionRun(
        session_id=session_id,
        trigger=trigger,
        policy=now.policy_name,
        policy_snapshot=now.policy.as_dict(),
        instructions=instructions,
        up_to_seq=up_to_seq,
        model=now.subject.summary_model,
    )
    return _inserted(run)


def _inserted(run: CompactionRun) -> tuple[CompactionRun, bool]:
    """The row, or the open one that was there first."""
    while True:
        try:
            with transaction.atomic():
                run.save(force_insert=True)
            return run, True
        except IntegrityError:
            existing = open_run_of(run.session_id)
            if existing:
                return existing, False
            if backends.get().subject(run.session_id) is None:
                raise NoSuchSession(str(run.session_id)) from None
            # The open run ended between the two: ours may be inserted now.


def _awaited(run: CompactionRun) -> CompactionRun:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        now = CompactionRun.objects.filter(pk=run.pk).first()
        if now is None:
            raise NoSuchSession(str(run.session_id))
        if now.status not in OPEN or time.monotonic() >= deadline:
            return now
        close_old_connections()  # a pooled one is others' meanwhile
        time.sleep(POLL_SECONDS)


def _enqueue(run_id: Any) -> bool:
    """Wake a worker; a queue that cannot be told now is told by the next sweep."""
    from compaction.tasks import enqueue

    try:
        enqueue(run_id)
    except DatabaseError:
        logger.exception("the queue was not told of run %s", run_id)
        return False
    return True

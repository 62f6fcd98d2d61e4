"""Request, execute, preview and rewind compaction runs.

The run's row is the truth; the queue only wakes a worker. A run is requested (`queue.py`), claimed
(`leases.py`), executed (`execution.py`), and installed and ended (`lifecycle.py`).
"""

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Unpack
from uuid import UUID

from django.db import (
    DatabaseError,
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)
from django.db import Error as DatabaseProblem
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from chatcore.base.databases.outages import find_outage, store_patiently
from chatcore.context import revisions
from chatcore.events.log import append_events
from chatcore.events.types import CompactionEndedPayload, EventType
from chatcore.models import Session
from chatcore.sessions import changes
from compaction.models import OPEN_STATUSES, CompactionRun
from compaction.runs import execution, history, leases, lifecycle, tasks
from compaction.runs.queue import RunConflict, RunOptions, find_or_create_run, load_run_context
from compaction.sessions.session_context import NoSuchSession
from compaction.summaries.call_log import ProviderBusy
from compaction.summaries.summarizer import simulate_summary

logger = logging.getLogger(__name__)

Status = CompactionRun.Status
Trigger = CompactionRun.Trigger
WAIT_SECONDS = 60.0  # for a run that another worker holds
POLL_SECONDS = 0.2
RESEND_DELAY = timedelta(seconds=60)
RESENT_RUNS = 16  # by one sweep: a message wakes a worker for any run

STOPPED_REASON = "It was stopped by hand."


class NotRewindable(Exception):
    """The run changed nothing, or what it changed has been undone."""


def request_run(session_id: UUID, *, trigger: str, **options: Unpack[RunOptions]) -> CompactionRun:
    """Request a run, and notify the queue of it after the commit.

    Where the session's open run does what is requested, that run is returned: two triggers make
    one run. For the options see RunOptions. Raises RunConflict where the open run has
    other options, UnknownPolicy and PolicyError for a policy that cannot be used, NoSuchSession.
    """
    run, is_new = find_or_create_run(session_id, trigger=trigger, options=options)
    if is_new:
        transaction.on_commit(lambda: tasks.send_run(run.pk), robust=True)
    return run


def compact_now(session_id: UUID, *, trigger: str, **options: Unpack[RunOptions]) -> CompactionRun:
    """Request a run, execute it in this thread, and return it as it then is.

    Where another worker holds the session's run, wait for that for 60 seconds at most. An open run
    with other options is executed first, then the new one. A summary that fails raises nothing: the
    status says so. Raises what `request_run` raises, but RunConflict only after those 60 seconds.
    """
    while True:
        try:
            run, _ = find_or_create_run(session_id, trigger=trigger, options=options)
        except RunConflict as conflict:
            if execute_run(conflict.run.pk):
                continue
            if wait_for_run(conflict.run, seconds=WAIT_SECONDS).status in OPEN_STATUSES:
                raise
        else:
            return execute_run(run.pk) or wait_for_run(run, seconds=WAIT_SECONDS)


def execute_run(run_id: UUID | str, *, obey_limits: bool = False) -> CompactionRun | None:
    """Claim a run and bring it to its end. Return None when it cannot be claimed or was lost.

    With `obey_limits` the run stays queued while its policy (flow.workers) or its provider has no
    place left.
    """
    run = leases.claim_run(run_id, obey_limits=obey_limits)
    return None if run is None else _execute_claimed_run(run)


def execute_next_run(note_claim: Callable[[str], object]) -> CompactionRun | None:
    """Claim the run whose turn it is, and bring it to its end.

    Return None when none waits, none finds a place, or it was lost. `note_claim` is called with its
    id before another process can see the claim.
    """
    run = leases.claim_next_run(note_claim)
    return None if run is None else _execute_claimed_run(run)


def _execute_claimed_run(run: CompactionRun) -> CompactionRun | None:
    try:
        with leases.keep_lease(run):
            execution.process_run(run)
    except execution.ContextKeepsChanging:
        _try_later(run)
    except ProviderBusy as busy:
        _come_back(run, busy)
    except DatabaseProblem as error:
        if not isinstance(error, OperationalError) and not find_outage(error):
            raise
        logger.warning("the database did not answer compaction run %s; it is given back", run.pk)
        _give_back_when_possible(run)
        raise
    except leases.RunLeaseLost:
        if CompactionRun.objects.filter(pk=run.pk).exists():
            logger.warning("compaction run %s was taken over by another worker", run.pk)
        else:
            logger.info("compaction run %s was deleted with its session", run.pk)
        return None
    finally:
        tasks.wake_for_freed_place(run.pk)
    return CompactionRun.objects.filter(pk=run.pk).first()


def _try_later(run: CompactionRun) -> None:
    """Queue a run whose context keeps changing, out of the line: the sweep puts it back there.

    A request that needs the room earlier executes it earlier.
    """
    logger.info("compaction run %s is tried later, because its context keeps changing", run.pk)
    CompactionRun.objects.filter(pk=run.pk).update(enqueued_at=Now())
    leases.give_back(run.pk, attempts=run.attempts, rest=RESEND_DELAY)


def _come_back(run: CompactionRun, busy: ProviderBusy) -> None:
    """Queue a run until its provider takes calls again. No worker executes it before."""
    logger.info("compaction run %s waits %g seconds: %s", run.pk, busy.seconds, busy)
    CompactionRun.objects.filter(pk=run.pk).update(enqueued_at=Now())
    rest = timedelta(seconds=busy.seconds)
    leases.give_back(run.pk, attempts=run.attempts, rest=rest, reason=str(busy))


def _give_back_when_possible(run: CompactionRun) -> None:
    """Queue a run again as soon as the database answers, from another thread.

    No process waits for it: without this the run would stay claimed until its lease ends.
    """

    def give_back() -> None:
        try:
            if store_patiently(partial(leases.give_back, run.pk, attempts=run.attempts)):
                tasks.send_run(run.pk)
        except DatabaseError:
            logger.exception("compaction run %s waits for the end of its lease", run.pk)
        finally:
            connection.close()

    threading.Thread(target=give_back, name=f"give-back-{run.pk}", daemon=True).start()


def wait_for_run(
    run: CompactionRun, *, seconds: float, should_wait: Callable[[], bool] = lambda: True
) -> CompactionRun:
    """Wait until another worker has ended a run, and return the run as it then is.

    The wait ends after `seconds`, or as soon as `should_wait` returns False. No connection is held
    meanwhile. Raises NoSuchSession when the run was deleted with its session.
    """
    deadline = time.monotonic() + seconds
    while True:
        latest_run = CompactionRun.objects.filter(pk=run.pk).first()
        if latest_run is None:
            raise NoSuchSession(str(run.session_id))
        if latest_run.status not in OPEN_STATUSES or leases.is_resting(latest_run.pk):
            return latest_run
        if time.monotonic() >= deadline or not should_wait():
            return latest_run
        # A pool has few connections, and the worker of the run needs one of them.
        close_old_connections()
        time.sleep(POLL_SECONDS)


def preview_run(session_id: UUID, **options: Unpack[RunOptions]) -> CompactionRun:
    """Return what a run by hand would do, as an unsaved run.

    No model is called and nothing is stored; the size of the summary is a guess. Raises what
    `request_run` raises except RunConflict.
    """
    context = load_run_context(session_id, options)
    run = CompactionRun(
        session_id=session_id,
        trigger=Trigger.MANUAL,
        policy=context.policy_name,
        instructions=options.get("instructions", ""),
        up_to_seq=options.get("up_to_seq"),
        only_stages=list(options.get("stages", ())),
    )
    run.from_version = options.get("from_version")
    run.boundary_before = context.facts.live.boundary_seq
    if objection := execution.find_objection(run, context):
        run.status = Status.SKIPPED
        run.reason = objection
        return run
    simulate = partial(simulate_summary, policy=context.policy)
    with history.go_back_to_read(run):
        context = load_run_context(session_id, options)
        transcript = execution.load_transcript(context)
    outcome = execution.propose_outcome(run, context, transcript, simulate)
    run.status = outcome.status
    run.reason = outcome.reason
    for name, value in lifecycle.build_run_record(outcome).items():
        setattr(run, name, value)
    return run


def rewind_run(run: CompactionRun, *, base_version: int | None = None) -> CompactionRun:
    """Go back to the context before an applied run, which undoes later runs as well.

    Automatic runs then wait until the context outgrows the window, or until a run is requested by
    hand; otherwise the next answer would undo the rewind. Raises NotRewindable, and StaleContext
    when the context is no longer at `base_version`.
    """
    return _rewind_context(run, to_version=run.version_before, base_version=base_version)


def rewind_to_run(run: CompactionRun) -> CompactionRun:
    """Go back to the context as an applied run left it, which undoes only later runs.

    Raises NotRewindable.
    """
    return _rewind_context(run, to_version=run.version_after)


def forget_summary(run: CompactionRun) -> None:
    """Send the full history of the run's session again.

    Structured state and memory stay, and no run counts as undone.
    """
    with transaction.atomic():
        version = revisions.reset_context(run.session_id).version
        changes.announce_context_change(run.session_id, version)


def _rewind_context(
    run: CompactionRun, *, to_version: int | None, base_version: int | None = None
) -> CompactionRun:
    with transaction.atomic():
        # The session's row is locked before runs are: a process that deletes a message or the
        # session locks in that order too, and the other way round would be a deadlock.
        try:
            session = Session.objects.lock(run.session_id)
        except Session.DoesNotExist:
            raise NotRewindable("The session was deleted.") from None
        run.refresh_from_db()
        if to_version is None or run.status != Status.APPLIED:
            raise NotRewindable(f"The run is {run.status}; only an applied one can be undone.")
        if session.context_version <= to_version:
            raise NotRewindable("Nothing came after the run.")
        history.move_context(run.session_id, to_version, base_version=base_version)
    run.refresh_from_db()
    return run


def resend_lost_runs() -> int:
    """Send runs to the queue again that it lost or whose worker died. Return how many.

    Of many that wait, only the oldest are sent: a message wakes a worker for any of them.
    """
    if not CompactionRun.objects.filter(status__in=OPEN_STATUSES).exists():
        return 0  # all that an idle server needs to know, in a fifth of the time
    # A run that was sent less than a minute ago may still be on its way to a worker.
    is_sending_due = Q(enqueued_at=None) | Q(enqueued_at__lt=Now() - RESEND_DELAY)
    # One that is to come was written while a clock was wrong.
    is_sending_due |= Q(enqueued_at__gt=Now() + RESEND_DELAY)
    # No message of a run that was claimed is on its way, so it waits for nothing but its lease.
    abandoned_ids = [
        run_id for run_id in leases.find_abandoned_runs() if leases.take_from_dead(run_id)
    ]
    is_sending_due |= Q(pk__in=abandoned_ids)
    lost_runs = CompactionRun.objects.filter(is_sending_due, status=Status.QUEUED).exclude(
        started_at=None, created_at__range=(Now() - RESEND_DELAY / 2, Now() + RESEND_DELAY)
    )
    return _send_oldest(lost_runs)


def resend_waiting_runs() -> int:
    """Send the queued runs again, whose messages may have died. Return how many."""
    return _send_oldest(CompactionRun.objects.filter(status=Status.QUEUED))


def _send_oldest(runs: QuerySet[CompactionRun]) -> int:
    run_ids = list(runs.order_by("created_at").values_list("pk", flat=True)[:RESENT_RUNS])
    return sum(tasks.send_run(run_id) for run_id in run_ids)


def cancel_run(run: CompactionRun) -> bool:
    """End an open run as skipped, and let automatic runs wait. Return False if it had ended.

    The worker's next write is conditional on its claim, which this takes away.
    """
    with transaction.atomic():
        # The event locks the session's row, which comes before the run (docs/concurrency.md).
        payload: CompactionEndedPayload = {"run": str(run.pk), "reason": STOPPED_REASON}
        append_events(run.session_id, (EventType.COMPACTION_SKIPPED, payload))
        open_run = CompactionRun.objects.filter(pk=run.pk, status__in=OPEN_STATUSES)
        has_ended = not open_run.update(
            status=CompactionRun.Status.SKIPPED,
            reason=STOPPED_REASON,
            finished_at=timezone.now(),
            lease_until=None,
        )
        if has_ended:
            transaction.set_rollback(True)
            return False
        lifecycle.delay_automatic_runs(run)
    if run.status == CompactionRun.Status.RUNNING:
        tasks.wake_for_freed_place(run.pk)
    return True

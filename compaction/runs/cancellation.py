"""Stop a run by hand: whoever works on it notices that its claim is lost, and writes nothing."""

from django.db import transaction
from django.utils import timezone

from chatcore.events.log import append_events
from chatcore.events.types import CompactionEndedPayload, EventType
from compaction.models import OPEN_STATUSES, CompactionRun
from compaction.runs import lifecycle, tasks

REASON = "It was stopped by hand."


def cancel_run(run: CompactionRun) -> bool:
    """End an open run as skipped, and let automatic runs wait. Return False if it had ended.

    The worker's next write is conditional on its claim, which this takes away.
    """
    with transaction.atomic():
        # The event locks the session's row, which comes before the run (docs/concurrency.md).
        payload: CompactionEndedPayload = {"run": str(run.pk), "reason": REASON}
        append_events(run.session_id, (EventType.COMPACTION_SKIPPED, payload))
        open_run = CompactionRun.objects.filter(pk=run.pk, status__in=OPEN_STATUSES)
        has_ended = not open_run.update(
            status=CompactionRun.Status.SKIPPED,
            reason=REASON,
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

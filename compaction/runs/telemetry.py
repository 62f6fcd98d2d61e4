"""Trace and count runs, for those who watch an installation."""

from collections.abc import Iterator
from contextlib import contextmanager

from chatcore.base.metrics import counts
from chatcore.base.traces import spans
from compaction.models import CompactionRun


@contextmanager
def trace_run(run: CompactionRun) -> Iterator[object]:
    """Open a span around a run, with one for its wait in the queue."""
    if not spans.are_on():
        yield None
        return
    attributes = {
        "chatcore.run.id": str(run.pk),
        "chatcore.run.trigger": run.trigger,
        "chatcore.run.policy": run.policy,
        "chatcore.run.attempt": run.attempts,
        "gen_ai.conversation.id": str(run.session_id),
    }
    with spans.open_span("compaction run", attributes, kind="consumer") as span:
        if run.enqueued_at:
            spans.begin_span("wait in the queue", {}, start=run.enqueued_at).end()
        yield span
    spans.send_spans()  # a worker's process may end next


def count_run(run: CompactionRun) -> None:
    """Count a run that has ended, in this process's metrics."""
    spans.note(
        {
            "chatcore.run.status": str(run.status),
            "chatcore.run.tokens_before": run.tokens_before,
            "chatcore.run.tokens_after": run.tokens_after,
        }
    )
    counts.count_run(
        policy=run.policy,
        trigger=run.trigger,
        outcome=run.status,
        seconds=None if run.duration_ms is None else run.duration_ms / 1000,
        tokens_before=run.tokens_before,
        tokens_after=run.tokens_after,
    )

"""Make chatcore a host of compaction; this package is the only place that knows both."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from uuid import UUID

from chatcore import signals
from chatcore.events import log as event_log
from chatcore.events.types import EventType, NewEvent
from chatcore.metrics import counts, exposition
from chatcore.models import Session
from chatcore.sessions import changes
from chatcore.sessions.holds import refuse_lost_text
from chatcore.traces import spans
from chatcore.turns.recovery import RecoveryChore
from compaction.backends.chatcore.context_store import ChatcoreContextStore
from compaction.backends.chatcore.message_source import ChatcoreMessageSource
from compaction.backends.chatcore.operators import ChatcoreOperatorSource
from compaction.backends.chatcore.request_editor import ChatcoreRequestEditor
from compaction.backends.chatcore.session_facts import ChatcoreSessionFacts
from compaction.backends.chatcore.summary_calls import ChatcoreSummaryCaller
from compaction.backends.events import CompactionEvent
from compaction.models import CompactionRun


class ChatcoreBackend(
    ChatcoreSessionFacts,
    ChatcoreContextStore,
    ChatcoreRequestEditor,
    ChatcoreSummaryCaller,
    ChatcoreMessageSource,
    ChatcoreOperatorSource,
):
    """Chatcore's sessions, messages and providers in compaction's words. It decides nothing."""

    def __init__(self) -> None:
        self._recovery = RecoveryChore()

    def subscribe_to_responses(self, receiver: Callable[..., None], uid: str) -> None:
        """Connect a receiver to `response_completed`, the only signal of chatcore."""
        signals.response_completed.connect(receiver, dispatch_uid=uid)

    def announce_events(
        self, session_id: UUID, *events: tuple[CompactionEvent, dict[str, Any]]
    ) -> None:
        """Append events to the session's log. The session's row is locked for it."""
        session_events = [
            cast(NewEvent, (EventType(event_name), payload)) for event_name, payload in events
        ]
        event_log.append_events(session_id, *session_events)

    def announce_state_change(self, session_id: UUID) -> None:
        """Record the change with the other changes of sessions. It is no act of the user's."""
        changes.record_session_change(session_id, fields=["state"], is_user_act=False)

    def refuse_lost_words(self, user_pk: object, old: str, new: str) -> None:
        """Raise OnHold while the user is on legal hold."""
        refuse_lost_text(user_pk, old, new)

    def announce_context_change(self, session_id: UUID, version: int) -> None:
        """Announce the new version with the other changes of sessions."""
        changes.announce_context_change(session_id, version)

    def count_manual_run(self, session_id: UUID, *, user_pk: object = None) -> float | None:
        """Count a run by hand, of this user or else of the session's owner."""
        # Imported here: a worker counts none, and need not load what REST needs.
        from chatcore.rest import turn_rate

        if user_pk is None:
            owners = Session.objects.filter(pk=session_id).values_list("owner_id", flat=True)
            user_pk = owners.first()
        return None if user_pk is None else turn_rate.count_compaction(user_pk)

    @contextmanager
    def trace_run(self, run: CompactionRun) -> Iterator[object]:
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

    def count_run(self, run: CompactionRun) -> None:
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

    def count_refused_summary(self, reason: str) -> None:
        """Count an answer of a summary model that was not used."""
        counts.count_refused_summary(reason)

    def serve_metrics(self, host: str, port: int) -> None:
        """Serve the counts of this machine's processes, in a thread. Raises OSError."""
        exposition.serve_counts(host, port)

    def recover_turns(self) -> int:
        """Close the turns of processes that died, and return their number."""
        return self._recovery.recover()

"""The event log of a session: append events, read them, and follow them as they come."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from chatcore.events import webhooks
from chatcore.events.fanout import wake_ups
from chatcore.events.types import DELTA_EVENTS, EventType, NewEvent
from chatcore.models import Message, Session, SessionEvent
from chatcore.threads import run_in_thread

HEARTBEAT_SECONDS = 15.0
EVENT_PAGE_SIZE = 500
DELTA_RETENTION = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Event:
    """One stored event as clients see it."""

    session: UUID
    seq: int
    name: str
    data: dict[str, Any]
    at: datetime

    def to_payload(self) -> dict[str, Any]:
        """Return the event's JSON object: its own fields with `session`, `seq` and `at`."""
        return {
            "session": str(self.session),
            "seq": self.seq,
            "at": self.at.isoformat(),
            **self.data,
        }


def append_events(session_id: UUID, *events: NewEvent) -> int:
    """Append events in order, and wake their readers on commit.

    Returns the `seq` of the last event, or 0 when the session is gone.
    """
    now = timezone.now()
    with transaction.atomic():
        # The UPDATE locks the session's row until commit, so events become visible in the order
        # of their numbers. A reader that asks for "everything after N" can therefore miss none.
        session_row = Session.objects.filter(pk=session_id)
        if not session_row.update(last_event_seq=F("last_event_seq") + len(events)):
            return 0
        last_seq = session_row.values_list("last_event_seq", flat=True).get()
        rows = [
            _build_row(session_id, seq, event, now)
            for seq, event in enumerate(events, start=last_seq - len(events) + 1)
        ]
        SessionEvent.objects.bulk_create(rows)
        webhooks.queue_deliveries(session_id, rows)
        # Readers are woken after the commit: before it they would find nothing new.
        transaction.on_commit(lambda: wake_ups.wake(session_id))
    return last_seq


def read_events(session_id: UUID, after_seq: int, limit: int = EVENT_PAGE_SIZE) -> list[Event]:
    """Return at most `limit` events that follow number `after_seq`, in order."""
    rows = SessionEvent.objects.filter(session_id=session_id, seq__gt=after_seq).order_by("seq")
    return [
        Event(session=session_id, seq=seq, name=name, data=data, at=at)
        for seq, name, data, at in rows.values_list("seq", "name", "data", "at")[:limit]
    ]


async def follow_events(session_id: UUID, after_seq: int) -> AsyncIterator[Event | None]:
    """Yield stored and future events after number `after_seq`, from any process.

    Yields None as a heartbeat after HEARTBEAT_SECONDS without an event. Ends when the session is
    deleted.
    """
    with wake_ups.watch_session(session_id) as wake_event:
        while True:
            # Clear before reading. An event that is committed during the read sets the flag again,
            # so the next wait returns at once instead of missing it.
            wake_event.clear()
            events = await run_in_thread(read_events, session_id, after_seq)
            for event in events:
                after_seq = event.seq
                yield event
            if events:
                continue
            try:
                await asyncio.wait_for(wake_event.wait(), HEARTBEAT_SECONDS)
            except TimeoutError:
                if not await run_in_thread(Session.objects.filter(pk=session_id).exists):
                    return
                yield None


def join_deltas(message_id: int) -> tuple[str, str]:
    """Return the text and the reasoning of a message, joined from its stored deltas.

    This serves messages that are still streaming, or whose process died before storing them.
    """
    texts: dict[str, list[str]] = {name: [] for name in DELTA_EVENTS}
    rows = SessionEvent.objects.filter(message=message_id, name__endswith=".delta").order_by("seq")
    for name, data in rows.values_list("name", "data"):
        texts[name].append(data["text"])
    return "".join(texts[EventType.MESSAGE_DELTA]), "".join(texts[EventType.REASONING_DELTA])


def delete_old_deltas() -> int:
    """Delete the deltas of complete messages after DELTA_RETENTION. Returns how many.

    The text itself stays in the message.
    """
    streaming_messages = Message.objects.filter(status=Message.Status.STREAMING).values("pk")
    old_deltas = SessionEvent.objects.filter(
        name__endswith=".delta", at__lt=timezone.now() - DELTA_RETENTION
    )
    return old_deltas.exclude(message__in=streaming_messages).delete()[0]


def _build_row(session_id: UUID, seq: int, event: NewEvent, at: datetime) -> SessionEvent:
    event_type = EventType(event[0])
    data: dict[str, Any] = {**event[1]}
    return SessionEvent(
        session_id=session_id,
        seq=seq,
        name=event_type.value,
        message=data["message"] if event_type in DELTA_EVENTS else None,
        data=data,
        at=at,
    )

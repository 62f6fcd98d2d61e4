"""The session's event log: append, tail, and the Server-Sent Events wire format."""

import asyncio
import contextlib
import json
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import close_old_connections, transaction
from django.db.models import F
from django.utils import timezone

from chatcore.events import webhooks
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.threads import run_in_thread

HEARTBEAT_SECONDS = 15.0
POLL_SECONDS = 0.2  # how soon another process's events are seen
EVENT_PAGE_SIZE = 500
DELTA_RETENTION = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Event:
    """One line of the log as clients see it."""

    session: UUID
    seq: int
    name: str
    data: dict[str, Any]
    at: datetime

    def to_payload(self) -> dict[str, Any]:
        """The JSON of the event: its own fields, and `session`, `seq`, `at`."""
        return {
            "session": str(self.session),
            "seq": self.seq,
            "at": self.at.isoformat(),
            **self.data,
        }

    def to_sse_frame(self) -> bytes:
        """The event as Server-Sent Events frame it (WHATWG HTML, section 9.2)."""
        body = json.dumps(self.to_payload(), separators=(",", ":"), ensure_ascii=False)
        return f"id: {self.seq}\nevent: {self.name}\ndata: {body}\n\n".encode()


def append_events(session_id: UUID, *events: tuple[str, dict[str, Any]]) -> int:
    """Append (name, data) events in order and wake their readers on commit. Returns the last `seq`.

    The session's row is locked for it, so that events become visible in the order of their numbers.
    """
    now = timezone.now()
    with transaction.atomic():
        session_row = Session.objects.filter(pk=session_id)
        if not session_row.update(last_event_seq=F("last_event_seq") + len(events)):
            return 0
        last_seq = session_row.values_list("last_event_seq", flat=True).get()
        SessionEvent.objects.bulk_create(
            SessionEvent(
                session_id=session_id,
                seq=seq,
                name=name,
                message=_get_delta_message(name, data),
                data=data,
                at=now,
            )
            for seq, (name, data) in enumerate(events, start=last_seq - len(events) + 1)
        )
        webhooks.queue_deliveries(
            session_id,
            [(seq, *event) for seq, event in enumerate(events, start=last_seq - len(events) + 1)],
        )
        transaction.on_commit(lambda: wake_ups.wake(session_id))
    return last_seq


def read_events(session_id: UUID, after_seq: int, limit: int = EVENT_PAGE_SIZE) -> list[Event]:
    """The next events after `after`, in order: one indexed range."""
    rows = SessionEvent.objects.filter(session_id=session_id, seq__gt=after_seq).order_by("seq")
    return [
        Event(session=session_id, seq=seq, name=name, data=data, at=at)
        for seq, name, data, at in rows.values_list("seq", "name", "data", "at")[:limit]
    ]


async def follow_events(session_id: UUID, after_seq: int) -> AsyncIterator[Event | None]:
    """All events after `after`, past and to come, from whatever process; None is a heartbeat. Ends when the session is gone."""
    with wake_ups.watch_session(session_id) as wake_event:
        while True:
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


async def stream_frames(
    session_id: UUID, after_seq: int, *, turn_id: UUID | None = None
) -> AsyncIterator[bytes]:
    """The tail on the wire; with `turn`, up to the event that ends it, or to where it waits for its client."""
    yield b": open\n\n"
    async for event in follow_events(session_id, after_seq):
        if event is None:
            yield b": heartbeat\n\n"
            continue
        yield event.to_sse_frame()
        if (
            turn_id
            and event.data.get("turn") == str(turn_id)
            and await _is_last_event(event, turn_id)
        ):
            return


async def _is_last_event(event: Event, turn_id: UUID) -> bool:
    if event.name == "turn.waiting":  # a turn that was resumed since is followed further
        return await run_in_thread(
            Turn.objects.filter(pk=turn_id, status=Turn.Status.WAITING).exists
        )
    return event.name in TURN_END_EVENTS


TURN_END_EVENTS = frozenset({"turn.completed", "turn.failed", "turn.cancelled"})


def join_deltas(message_id: int) -> tuple[str, str]:
    """(text, reasoning) of a message from its stored deltas: what a dead process had said, or what is being said now."""
    text: list[str] = []
    reasoning: list[str] = []
    rows = SessionEvent.objects.filter(message=message_id, name__endswith=".delta").order_by("seq")
    for name, data in rows.values_list("name", "data"):
        (text if name == "message.delta" else reasoning).append(data["text"])
    return "".join(text), "".join(reasoning)


def delete_old_deltas() -> int:
    """Drop the deltas of messages complete for KEEP_DELTAS: the message itself holds the words. Returns how many."""
    streaming_messages = Message.objects.filter(status=Message.Status.STREAMING).values("pk")
    old_deltas = SessionEvent.objects.filter(
        name__endswith=".delta", at__lt=timezone.now() - DELTA_RETENTION
    )
    return old_deltas.exclude(message__in=streaming_messages).delete()[0]


def _get_delta_message(name: str, data: dict[str, Any]) -> int | None:
    return data["message"] if name.endswith(".delta") else None


class WakeUps:
    """Tells readers that their session has something new: at once in this process, within POLL_SECONDS from any other.

    One thread asks for all watched sessions in one query, so a thousand readers cost what one costs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: dict[UUID, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = (
            defaultdict(set)
        )
        self._poller: threading.Thread | None = None

    @contextlib.contextmanager
    def watch_session(self, session_id: UUID) -> Iterator[asyncio.Event]:
        """An asyncio.Event of the running loop that is set whenever the session may have new events."""
        watcher = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._watchers[session_id].add(watcher)
            if self._poller is None:
                self._poller = threading.Thread(
                    target=self._poll, name="event-wake-ups", daemon=True
                )
                self._poller.start()
        try:
            yield watcher[1]
        finally:
            with self._lock:
                self._watchers[session_id].discard(watcher)
                if not self._watchers[session_id]:
                    del self._watchers[session_id]

    def wake(self, session_id: UUID) -> None:
        """Set every watcher of the session; safe from any thread."""
        with self._lock:
            watchers = list(self._watchers.get(session_id, ()))
        for loop, wake_event in watchers:
            with contextlib.suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(wake_event.set)

    def _poll(self) -> None:
        last_seqs: dict[UUID, int] = {}
        while True:
            time.sleep(POLL_SECONDS)
            with self._lock:
                session_ids = list(self._watchers)
                if not session_ids:
                    self._poller = None
                    return
            last_seqs = self._wake_changed_sessions(session_ids, last_seqs)

    def _wake_changed_sessions(
        self, session_ids: list[UUID], last_seqs: dict[UUID, int]
    ) -> dict[UUID, int]:
        try:
            new_seqs = dict(
                Session.objects.filter(pk__in=session_ids).values_list("id", "last_event_seq")
            )
        except Exception:  # noqa: BLE001 - the database is away; readers retry by themselves, and so does this thread
            return last_seqs
        finally:
            close_old_connections()
        for session_id, last_seq in new_seqs.items():
            if last_seqs.get(session_id) != last_seq:
                self.wake(session_id)
        return new_seqs


wake_ups = WakeUps()

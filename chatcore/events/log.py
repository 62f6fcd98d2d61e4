"""The event log of a session: append events, read them, and follow them as they come."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chatcore.base.threads import run_in_thread
from chatcore.events.hub import event_hub
from chatcore.events.listener import get_relay
from chatcore.events.types import DELTA_EVENTS, DELTA_TYPES, DeltaType, Event, EventType, NewEvent
from chatcore.extension import get_extensions
from chatcore.models import SessionEvent
from chatcore.models.statements import (
    EventRow,
    NewRows,
    Numbers,
    insert_events,
    reserve_numbers,
)

HEARTBEAT_SECONDS = 15.0
EVENT_PAGE_SIZE = 500
EVENT_PAGE_BYTES = 1_000_000  # counted in characters of JSON
FIRST_BATCH_SIZE = 32  # events


class EventPage(NamedTuple):
    """Some events of a session in order; `is_last` if none followed when they were read."""

    events: list[Event]
    is_last: bool


def append_events(session_id: UUID, *events: NewEvent) -> int:
    """Append events in order, and hand them to their readers on commit.

    Returns the `seq` of the last event, or 0 when the session is gone.
    """
    return append_events_of_many({session_id: events}).get(session_id, 0)


def append_events_of_many(new_events: Mapping[UUID, Sequence[NewEvent]]) -> dict[UUID, int]:
    """Append events to several sessions, in as many statements as for one.

    Returns the `seq` of each session's last event; sessions that are gone are left out.
    """
    # Without a savepoint: these are two statements more, and no caller goes on after an error.
    with transaction.atomic(savepoint=False):
        numbers = reserve_numbers(
            {session_id: NewRows(events=len(events)) for session_id, events in new_events.items()}
        )
        store_numbered_events(new_events, numbers)
    return {session_id: last.event_seq for session_id, last in numbers.items()}


def store_numbered_events(
    new_events: Mapping[UUID, Sequence[NewEvent]], numbers: Mapping[UUID, Numbers]
) -> None:
    """Store events, and hand them to their readers on commit.

    `numbers` has the last of those that were reserved for them in this transaction, by session.
    Events of other sessions are dropped.
    """
    now = timezone.now()
    events_by_session = [
        (
            session_id,
            [
                Event(
                    session=session_id,
                    seq=seq,
                    name=EventType(name).value,
                    data={**payload},
                    at=now,
                )
                for seq, (name, payload) in enumerate(
                    new_events[session_id], start=last.event_seq - len(new_events[session_id]) + 1
                )
            ],
        )
        for session_id, last in numbers.items()
    ]
    insert_events(
        [
            _build_row(event, numbers[session_id].owner_id)
            for session_id, events in events_by_session
            for event in events
        ]
    )
    for session_id, events in events_by_session:
        for extension in get_extensions("on_events"):
            extension.on_events(session_id, events)
    get_relay().send(events_by_session)
    # Readers get them after the commit: before it, another reader would not find them.
    transaction.on_commit(lambda: event_hub.publish(events_by_session))


def _build_row(event: Event, owner_id: object) -> EventRow:
    return EventRow(
        owner_id=owner_id,
        session_id=event.session,
        seq=event.seq,
        name=event.name,
        message=event.data["message"] if event.name in DELTA_EVENTS else None,
        data=event.data,
        at=event.at,
    )


def read_events(
    session_id: UUID, after_seq: int, *, max_bytes: int = EVENT_PAGE_BYTES
) -> list[Event]:
    """Return a page of the events that follow number `after_seq`, in order; [] at the end."""
    return read_page(session_id, after_seq, max_bytes=max_bytes).events


def read_page(session_id: UUID, after_seq: int, *, max_bytes: int = EVENT_PAGE_BYTES) -> EventPage:
    """Return a page of the events that follow number `after_seq`.

    A page has at most EVENT_PAGE_SIZE events, and ends with the one that brings it to `max_bytes`.
    Every reader holds a page, also one that does not read on.
    """
    events: list[Event] = []
    byte_count = 0
    row_count = FIRST_BATCH_SIZE
    while len(events) < EVENT_PAGE_SIZE:
        row_count = min(row_count, EVENT_PAGE_SIZE - len(events))
        batch = _read_batch(session_id, events[-1].seq if events else after_seq, row_count)
        for event in batch:
            events.append(event)
            byte_count += len(event.payload_json)
            if byte_count >= max_bytes:
                return EventPage(events, is_last=False)
        if len(batch) < row_count:
            return EventPage(events, is_last=True)
        # Few at first, because they may be large.
        row_count *= 4
    return EventPage(events, is_last=False)


def _read_batch(session_id: UUID, after_seq: int, row_count: int) -> list[Event]:
    rows = SessionEvent.objects.filter(session_id=session_id, seq__gt=after_seq).order_by("seq")
    return [
        Event(session=session_id, seq=seq, name=name, data=data, at=at)
        for seq, name, data, at in rows.values_list("seq", "name", "data", "at")[:row_count]
    ]


async def follow_events(
    session_id: UUID, after_seq: int, *, is_endless: bool = False
) -> AsyncGenerator[Event | None]:
    """Yield stored and future events after number `after_seq`, from any process.

    Yields None as a heartbeat after HEARTBEAT_SECONDS without an event. Ends when the session is
    deleted, and when the process stops; an endless one as soon as the process hands over.
    """
    with event_hub.watch_session(session_id) as subscription:
        while True:
            # Clear before looking. An event that is published meanwhile sets the flag again, so
            # the next wait returns at once instead of missing it.
            subscription.wake_event.clear()
            events = subscription.get_events_after(after_seq)
            if events is None:
                page = await run_in_thread(read_page, session_id, after_seq)
                events = page.events
                if events and page.is_last:
                    subscription.note_last(events[-1].seq)
            for event in events:
                after_seq = event.seq
                yield event
            if events:
                continue
            if subscription.is_over or (is_endless and event_hub.is_handing_over):
                return
            try:
                # Not `wait_for`: before Python 3.12 it drops a cancellation that comes together
                # with an event, and whoever is signed out would read on.
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await subscription.wake_event.wait()
            except TimeoutError:
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


def count_delta_chars(message_id: int) -> dict[DeltaType, int]:
    """Return how many characters of a streaming message's text and reasoning are in the log."""
    deltas = SessionEvent.objects.filter(message=message_id, name__endswith=".delta")
    char_counts: dict[DeltaType, int] = {}
    for delta_type in DELTA_TYPES:
        last_delta = deltas.filter(name=delta_type).order_by("-seq").first()
        if last_delta:
            char_counts[delta_type] = last_delta.data["offset"] + len(last_delta.data["text"])
    return char_counts

"""Write a session's events as Server-Sent Events (WHATWG HTML, section 9.2)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from uuid import UUID

from chatcore.base.threads import run_in_thread
from chatcore.events.log import follow_events
from chatcore.events.types import TURN_END_EVENTS, Event, EventType
from chatcore.models import Turn


def format_frame(event: Event) -> bytes:
    """Return the event as one block of the stream: its id, name and JSON data."""
    return f"id: {event.seq}\nevent: {event.name}\ndata: {event.payload_json}\n\n".encode()


async def stream_frames(
    session_id: UUID, after_seq: int, *, turn_id: UUID | None = None
) -> AsyncGenerator[bytes]:
    """Yield the session's events after number `after_seq`, with comments as heartbeats.

    With `turn_id` the stream ends with the event that ends this turn, or at which the turn waits
    for its client.
    """
    yield b": open\n\n"
    is_endless = turn_id is None
    async with aclosing(follow_events(session_id, after_seq, is_endless=is_endless)) as events:
        async for event in events:
            if event is None:
                yield b": heartbeat\n\n"
                continue
            yield format_frame(event)
            if turn_id and await _is_last_event(event, turn_id):
                return


async def _is_last_event(event: Event, turn_id: UUID) -> bool:
    if event.data.get("turn") != str(turn_id):
        return False
    if event.name == EventType.TURN_WAITING:
        # The log may be replayed from an early number: a turn that waited there and went on since
        # is followed further.
        waiting_turn = Turn.objects.filter(pk=turn_id, status=Turn.Status.WAITING)
        return await run_in_thread(waiting_turn.exists)
    return event.name in TURN_END_EVENTS

"""Append events by their public names, with whatever data a test needs, and read them back."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from chatcore.events import log as event_log
from chatcore.events.types import Event


def append_events(session_id: UUID, *events: tuple[str, dict[str, Any]]) -> int:
    """Append (name, data) events without the fields that the type of each event requires."""
    untyped_events: Any = events
    return event_log.append_events(session_id, *untyped_events)


async def take_seqs(tail: AsyncIterator[Event | None], count: int) -> list[int]:
    """Return the numbers of the next events."""
    seen: list[int] = []
    async for event in tail:
        if event:
            seen.append(event.seq)
        if len(seen) == count:
            break
    return seen

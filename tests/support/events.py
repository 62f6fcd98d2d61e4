"""Append events by their public names, with whatever data a test needs."""

from typing import Any
from uuid import UUID

from chatcore.events import log as event_log


def append_events(session_id: UUID, *events: tuple[str, dict[str, Any]]) -> int:
    """Append (name, data) events without the fields that the type of each event requires."""
    untyped_events: Any = events
    return event_log.append_events(session_id, *untyped_events)

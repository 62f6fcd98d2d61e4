"""Announce what compaction does to those who watch a session."""

from typing import Any, cast
from uuid import UUID

from chatcore.events import log as event_log
from chatcore.events.types import EventType, NewEvent


def announce_events(session_id: UUID, *events: tuple[EventType, dict[str, Any]]) -> None:
    """Append events to the session's log. Joins the open transaction, and locks the session."""
    event_log.append_events(session_id, *(cast(NewEvent, event) for event in events))

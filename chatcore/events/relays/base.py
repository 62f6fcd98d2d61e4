"""What a relay of events is, and the form in which it sends them."""

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from chatcore.events.hub import EventHub
from chatcore.events.types import Event

EventsBySession = Sequence[tuple[UUID, Sequence[Event]]]
_PROCESS_TOKEN = secrets.token_hex(4)


class EventRelay(Protocol):
    """Carries events between processes. One object serves the whole process.

    `send` is called by any thread; the other methods by the thread that listens for readers
    (chatcore/events/listener.py).
    """

    check_seconds: float
    """How often the database is asked besides, for what the relay may have missed."""

    def send(self, events_by_session: EventsBySession) -> None:
        """Send events, inside the transaction that stores them, for delivery after its commit."""
        ...

    def open(self) -> None:
        """Begin to receive. Everything that is committed from now on will be delivered."""
        ...

    def receive(self, hub: EventHub) -> None:
        """Wait a second at most, and publish what other processes have sent.

        Raises what the connection raises; then `open` is called again after a pause.
        """
        ...

    def close(self) -> None:
        """Stop receiving and give back the connection."""
        ...


def get_process_name() -> str:
    """Return a name of this process that no other process has, also after a fork."""
    return f"{_PROCESS_TOKEN}-{os.getpid()}"


def encode_packets(events_by_session: EventsBySession, *, max_bytes: int) -> Iterator[str]:
    """Yield JSON texts of at most `max_bytes` bytes that hold these events.

    Of an event that is larger, only the session and the number are sent.
    """
    packet_entries: list[str] = []
    prefix = f'["{get_process_name()}",['
    size = len(prefix) + 2
    for entry in _encode_entries(events_by_session, max_bytes - size - 1):
        entry_size = len(entry) + 1
        if packet_entries and size + entry_size > max_bytes:
            yield f"{prefix}{','.join(packet_entries)}]]"
            packet_entries, size = [], len(prefix) + 2
        packet_entries.append(entry)
        size += entry_size
    if packet_entries:
        yield f"{prefix}{','.join(packet_entries)}]]"


def publish_packet(hub: EventHub, packet: str) -> None:
    """Publish what a packet of another process holds; its own packets are known already."""
    if packet.startswith(f'["{get_process_name()}",'):
        return
    events: dict[UUID, list[Event]] = {}
    large_seqs: dict[UUID, int] = {}
    for session_hex, seq, *content in json.loads(packet)[1]:
        session_id = UUID(session_hex)
        if not hub.is_watched(session_id):
            continue
        if content:
            events.setdefault(session_id, []).append(_decode_event(session_id, seq, content))
        else:
            large_seqs[session_id] = seq
    hub.publish(events.items())
    hub.announce(large_seqs)


def _encode_entries(events_by_session: EventsBySession, max_chars: int) -> Iterator[str]:
    for session_id, events in events_by_session:
        for event in events:
            content = [session_id.hex, event.seq, event.name, event.at.isoformat(), event.data]
            # Escaped to ASCII, so characters are bytes.
            entry = json.dumps(content, separators=(",", ":"))
            yield entry if len(entry) <= max_chars else f'["{session_id.hex}",{event.seq}]'


def _decode_event(session_id: UUID, seq: int, content: Iterable[Any]) -> Event:
    name, at, data = content
    return Event(session=session_id, seq=seq, name=name, data=data, at=datetime.fromisoformat(at))

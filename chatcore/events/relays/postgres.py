"""Send events by PostgreSQL's NOTIFY, and receive them by LISTEN."""

from typing import Any

from django.db import connection

from chatcore.events.hub import EventHub
from chatcore.events.relays.base import EventsBySession, encode_packets, publish_packet

CHANNEL = "chatcore_events"
MAX_BYTES = 7_900  # PostgreSQL refuses a payload of 8,000 bytes
WAIT_SECONDS = 1.0

_NOTIFY_SQL = f"""
    SELECT pg_notify('{CHANNEL}', packet)
    FROM unnest(%s::text[]) AS packet
"""  # noqa: S608


class PostgresRelay:
    """Sends events as a part of the transaction that stores them.

    PostgreSQL delivers a notification when its transaction commits, in the order of commits, and
    never if it is rolled back. It needs a connection of its own that a pooler does not share.
    """

    check_seconds = 15.0

    def __init__(self) -> None:
        self._listening_connection: Any = None

    def send(self, events_by_session: EventsBySession) -> None:
        """Notify the other processes when the current transaction commits."""
        packets = list(encode_packets(events_by_session, max_bytes=MAX_BYTES))
        with connection.cursor() as cursor:
            # One statement, however many packets: sessions are locked meanwhile.
            cursor.execute(_NOTIFY_SQL, [packets])

    def open(self) -> None:
        """Connect and listen."""
        import psycopg

        self.close()
        params = connection.get_connection_params()
        params.pop("cursor_factory", None)
        self._listening_connection = psycopg.connect(**params, autocommit=True)
        self._listening_connection.execute(f"LISTEN {CHANNEL}")

    def receive(self, hub: EventHub) -> None:
        """Publish what comes within WAIT_SECONDS."""
        for notification in self._listening_connection.notifies(timeout=WAIT_SECONDS):
            publish_packet(hub, notification.payload)

    def close(self) -> None:
        """Close both connections of this thread."""
        if self._listening_connection is not None:
            self._listening_connection.close()
            self._listening_connection = None
        connection.close()

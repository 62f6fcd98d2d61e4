"""Find the events of other processes by asking the database again and again."""

import time

from django.db import connection

from chatcore.events.hub import EventHub
from chatcore.events.relays.base import EventsBySession
from chatcore.models import SessionEvent

POLL_SECONDS = 0.2  # the delay after which events of another process are seen
MAX_ROWS = 5_000  # read at once


class PollingRelay:
    """Asks for the event numbers of all watched sessions, every POLL_SECONDS.

    This serves any database, and PostgreSQL behind a pooler that cannot LISTEN.
    """

    check_seconds = POLL_SECONDS

    def send(self, events_by_session: EventsBySession) -> None:
        """Do nothing: the rows themselves are found."""

    def open(self) -> None:
        """Do nothing."""

    def receive(self, hub: EventHub) -> None:
        """Wait until the next check, which does the work (chatcore/events/listener.py)."""
        time.sleep(POLL_SECONDS)

    def close(self) -> None:
        """Do nothing."""


class SqliteRelay:
    """Asks SQLite for the rows that are newer than the newest one known, every POLL_SECONDS.

    SQLite has one writer at a time, so rows become visible in the order of their primary keys.
    PostgreSQL gives keys before the commit, and this would miss rows there. The cost is that of
    the new rows, however many sessions have readers.
    """

    check_seconds = 15.0

    def __init__(self) -> None:
        self._last_id = 0

    def send(self, events_by_session: EventsBySession) -> None:
        """Do nothing: the rows themselves are found."""

    def open(self) -> None:
        """Begin behind the newest row."""
        self._last_id = (
            SessionEvent.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        )

    def receive(self, hub: EventHub) -> None:
        """Wait POLL_SECONDS, and announce the events of watched sessions since the last time."""
        time.sleep(POLL_SECONDS)
        rows = SessionEvent.objects.filter(pk__gt=self._last_id).order_by("pk")
        last_seqs = {}
        for row_id, session_id, seq in rows.values_list("pk", "session_id", "seq")[:MAX_ROWS]:
            self._last_id = row_id
            last_seqs[session_id] = seq
        hub.announce(last_seqs)

    def close(self) -> None:
        """Close the connection, which belongs to this thread."""
        connection.close()

"""Receive the events of other processes, in one thread, for as long as this process has readers."""

import functools
import logging
import threading
import time
from uuid import UUID

from django.conf import settings
from django.db import close_old_connections, connection
from django.utils.module_loading import import_string

from chatcore.base.threads import outlive_errors
from chatcore.events.hub import EventHub, event_hub
from chatcore.events.relays.base import EventRelay
from chatcore.models import Session

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.2
SESSIONS_AT_ONCE = 500  # asked for in one query


@functools.cache
def get_relay() -> EventRelay:
    """Return the relay through which this process sends."""
    return create_relay()


def create_relay() -> EventRelay:
    """Return a new relay of the kind that the settings name, or of the best one they allow."""
    relay: EventRelay = import_string(_choose_relay_path())()
    return relay


def _choose_relay_path() -> str:
    relay_path: str | None = settings.CHATCORE.get("EVENT_RELAY")
    if relay_path:
        return relay_path
    if getattr(settings, "REDIS_URL", ""):
        return "chatcore.events.relays.redis.RedisRelay"
    if connection.vendor == "postgresql":
        return "chatcore.events.relays.postgres.PostgresRelay"
    return "chatcore.events.relays.polling.SqliteRelay"


class EventListener:
    """Runs the relay in a thread while the hub has readers, and checks the database besides.

    The checks find what a relay missed while it was away, and which sessions are deleted.
    """

    def __init__(self, hub: EventHub) -> None:
        self._hub = hub
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        hub.set_first_reader_callback(self.start)

    def start(self) -> None:
        """Start the thread unless it runs."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._listen, name="event-listener", daemon=True
                )
                self._thread.start()

    def _listen(self) -> None:
        # Not the relay that sends: a thread that ends closes its own while the next one starts.
        relay = create_relay()
        is_open = False
        checked_at = 0.0
        while not self._has_ended():
            try:
                if not is_open:
                    relay.open()
                    is_open = True
                    checked_at = 0.0  # for what was committed before the relay was open
                if time.monotonic() - checked_at >= relay.check_seconds:
                    checked_at = time.monotonic()
                    self._check_sessions()
                relay.receive(self._hub)
            except Exception as error:  # noqa: BLE001 - whatever is away comes back; readers wait
                if is_open:
                    logger.warning("events of other processes come late: %s", error)
                is_open = False
                time.sleep(RETRY_SECONDS)
                with outlive_errors("sessions could not be checked"):
                    self._check_sessions()
            finally:
                with outlive_errors("a connection could not be given back"):
                    close_old_connections()
        relay.close()

    def _has_ended(self) -> bool:
        with self._lock:
            if self._hub.list_watched():
                return False
            # Under the lock, so that a reader which comes now starts another thread.
            self._thread = None
            return True

    def _check_sessions(self) -> None:
        watched_sessions = list(self._hub.list_watched())
        for start in range(0, len(watched_sessions), SESSIONS_AT_ONCE):
            session_ids = watched_sessions[start : start + SESSIONS_AT_ONCE]
            last_seqs: dict[UUID, int] = dict(
                Session.objects.filter(pk__in=session_ids).values_list("pk", "last_event_seq")
            )
            self._hub.announce(last_seqs)
            self._hub.end_sessions(set(session_ids) - last_seqs.keys())


event_listener = EventListener(event_hub)

"""Wake the readers of a session's events, in this process and in others."""

import asyncio
import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from uuid import UUID

from django.db import close_old_connections

from chatcore.models import Session

POLL_SECONDS = 0.2  # the delay after which events of another process are seen


class WakeUps:
    """A registry of readers that wait for new events of a session.

    An event of this process wakes its readers at once. Events of other processes are found by one
    polling thread, which asks for all watched sessions in one query: a thousand readers cost the
    database as much as one does.
    """

    def __init__(self) -> None:
        # Readers belong to event loops, writers and the poller to threads; the lock guards both
        # attributes, and nothing waits while holding it.
        self._lock = threading.Lock()
        self._watchers: dict[UUID, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = (
            defaultdict(set)
        )
        self._poller: threading.Thread | None = None

    @contextlib.contextmanager
    def watch_session(self, session_id: UUID) -> Iterator[asyncio.Event]:
        """Yield a flag of the running event loop that is set when the session may have events."""
        wake_event = asyncio.Event()
        watcher = (asyncio.get_running_loop(), wake_event)
        with self._lock:
            self._watchers[session_id].add(watcher)
            if self._poller is None:
                self._poller = threading.Thread(
                    target=self._poll, name="event-wake-ups", daemon=True
                )
                self._poller.start()
        try:
            yield wake_event
        finally:
            with self._lock:
                self._watchers[session_id].discard(watcher)
                if not self._watchers[session_id]:
                    del self._watchers[session_id]

    def wake(self, session_id: UUID) -> None:
        """Wake every reader of the session. Any thread may call this."""
        with self._lock:
            watchers = list(self._watchers.get(session_id, ()))
        for loop, wake_event in watchers:
            # An asyncio.Event may only be set on its own loop. A loop that has closed raises
            # RuntimeError; its reader is gone with it.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(wake_event.set)

    def _poll(self) -> None:
        last_seqs: dict[UUID, int] = {}
        while True:
            time.sleep(POLL_SECONDS)
            with self._lock:
                session_ids = list(self._watchers)
                if not session_ids:
                    # Under the lock, so that a reader which comes now starts another thread.
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
        except Exception:  # noqa: BLE001 - without the database this thread tries again, as readers do
            return last_seqs
        finally:
            close_old_connections()
        for session_id, last_seq in new_seqs.items():
            if last_seqs.get(session_id) != last_seq:
                self.wake(session_id)
        return new_seqs


wake_ups = WakeUps()

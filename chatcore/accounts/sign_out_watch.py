"""End what is open for somebody who has signed out: one check for all open streams of a process."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator

from django.db import connections

from chatcore.accounts.senders import Sender, find_signed_in
from chatcore.base.threads import give_back_connection, outlive_errors, use_own_connection

# Whoever is signed out reads on for this time and that of a query.
CHECK_SECONDS = 3.0

Watcher = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class SignOutWatch:
    """Asks in a thread, for as long as anything is open, whether its senders are still signed in.

    While the database is away, nobody can be asked, so what is open stays open.
    """

    def __init__(self) -> None:
        # Streams belong to event loops, the check to a thread. The lock is held for a few lines
        # of memory only.
        self._lock = threading.Lock()
        self._watchers: dict[Sender, set[Watcher]] = {}
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def watch(self, sender: Sender | None) -> Iterator[asyncio.Event]:
        """Yield an event of this loop that is set when the sender is signed out."""
        sign_out_event = asyncio.Event()
        if sender is None:
            yield sign_out_event
            return
        watcher = (asyncio.get_running_loop(), sign_out_event)
        with self._lock:
            self._watchers.setdefault(sender, set()).add(watcher)
            self._start_thread()
        try:
            yield sign_out_event
        finally:
            with self._lock:
                watchers = self._watchers.get(sender, set())
                watchers.discard(watcher)
                if not watchers:
                    self._watchers.pop(sender, None)

    def _start_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._check_until_idle, name="sign-out-watch", daemon=True
            )
            self._thread.start()

    def _check_until_idle(self) -> None:
        # Whoever has signed out must not read on because others hold all connections of the pool.
        use_own_connection()
        while True:
            time.sleep(CHECK_SECONDS)
            with self._lock:
                senders = list(self._watchers)
                if not senders:
                    # Under the lock, so that who comes now starts another thread.
                    self._thread = None
                    break
            # All open streams depend on this thread, so nothing may end it.
            with outlive_errors("nobody can be asked who is signed in"):
                self._end_others(senders, find_signed_in(senders))
            with outlive_errors("a connection could not be given back"):
                give_back_connection()
        connections.close_all()

    def _end_others(self, senders: list[Sender], signed_in_senders: set[Sender]) -> None:
        with self._lock:
            watchers = [
                watcher
                for sender in senders
                if sender not in signed_in_senders
                for watcher in self._watchers.get(sender, ())
            ]
        for loop, sign_out_event in watchers:
            # A loop that has closed raises RuntimeError; its streams are gone with it.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(sign_out_event.set)


sign_out_watch = SignOutWatch()

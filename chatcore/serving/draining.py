"""Stop a web process so that its clients lose nothing.

At the first signal the process drains: it takes no new turns (503), `/readyz` says so, those who
follow a session are handed over to other processes, and the answers in progress go on. When the
last has ended, when the time is over or at a second signal, the process ends: answers that are left
are stored as interrupted, and then streams and connections are closed.

At HUP another process serves the same socket already (chatcore/serving/parent.py). Then the process
accepts no more connections, and answers what still comes over those that clients have kept, each
with `Connection: close`. It drains when no client can send anything more.
"""

import asyncio
import contextlib
import faulthandler
import logging
import os
import signal
import socket
import time
from types import FrameType

import uvicorn

from chatcore.serving.http_protocol import PatientHttpProtocol

END_SECONDS = 4.0  # for the last words of all answers
# For what comes over kept connections: longer than one may be without a whole request.
REPLACED_SECONDS = PatientHttpProtocol.HEAD_SECONDS + 1
ADMISSION_SECONDS = 5.0  # in which a request that has arrived takes its place, on a busy machine
SILENCE_SECONDS = 60.0  # of the event loop, after which the process ends
TICKS_BETWEEN_SIGNS = 50  # of life; a tick is a tenth of a second
logger = logging.getLogger(__name__)


class DrainingServer(uvicorn.Server):
    """uvicorn's server, which drains before it stops, and ends streams before connections.

    uvicorn waits for open requests and cuts them off, and only then says to the application that
    the process stops. So each stream would break without a word.

    A process that is replaced (HUP) serves on until no connection can bring a new request.

    A process whose event loop hangs writes to its log where, and ends; its parent starts another.
    """

    def __init__(
        self, config: uvicorn.Config, *, drain_seconds: float, ready: int | None = None
    ) -> None:
        super().__init__(config)
        self._drain_seconds = drain_seconds
        self._ready = ready
        self._deadline: float | None = None
        self._is_hurried = False
        self._is_draining = False
        self._is_replaced = False
        self._replaced_at: float | None = None
        self._quiet_since: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, and end at the second."""
        self._is_hurried = self.should_exit
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and tell the parent."""
        await super().startup(sockets)
        if self._ready is not None and self.started:
            signal.signal(signal.SIGHUP, self._note_replacement)
            os.write(self._ready, b".")

    def _note_replacement(self, *_: object) -> None:
        self._is_replaced = True

    async def on_tick(self, counter: int) -> bool:
        """Return True when the process may end; called ten times a second."""
        if counter % TICKS_BETWEEN_SIGNS == 0:
            faulthandler.dump_traceback_later(SILENCE_SECONDS, exit=True)
        if self._is_replaced and not self.should_exit:
            self.should_exit = self._has_left()
        if not await super().on_tick(counter):
            return False
        if not self._is_draining:
            self._is_draining = True
            PatientHttpProtocol.keeps_connections = False
            begin_draining(is_handing_over=self._drain_seconds > 0)
        if self._deadline is None:
            self._deadline = time.monotonic() + self._drain_seconds
        return self._is_hurried or time.monotonic() >= self._deadline or not _count_answers()

    def _has_left(self) -> bool:
        """Accept no more connections; return True when those that are left bring no new request.

        At most half of the time for answers passes so: a turn that begins now must come to its end.
        """
        connections = [
            each for each in self.server_state.connections if isinstance(each, PatientHttpProtocol)
        ]
        now = time.monotonic()
        if self._replaced_at is None:
            self._replaced_at = now
            self._deadline = now + self._drain_seconds
            for server in self.servers:
                server.close()
            PatientHttpProtocol.keeps_connections = False
            for connection in connections:
                connection.give_up_connection()
        is_over = now >= self._replaced_at + min(REPLACED_SECONDS, self._drain_seconds / 2)
        if any(each.may_send_more for each in connections):
            self._quiet_since = None
            return is_over
        # The last requests may not have taken their places yet, and draining refuses those.
        self._quiet_since = self._quiet_since or now
        return is_over or not connections or now >= self._quiet_since + ADMISSION_SECONDS

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, end answers and streams, and then all else."""
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(end_answers), END_SECONDS)
        await super().shutdown()


def begin_draining(*, is_handing_over: bool) -> None:
    """Take no new turns, and let those who follow a session go to another process.

    Where answers have no time to end, they stay and see the end first.
    """
    from chatcore.events.hub import event_hub
    from chatcore.turns import capacity

    capacity.close_admission()
    if is_handing_over:
        event_hub.hand_over()
    logger.info("asked to stop: %s answers are in progress", capacity.count_answers())


def _count_answers() -> int:
    from chatcore.turns import capacity

    return capacity.count_answers()


def end_answers() -> None:
    """End the turns of this process, and then the streams that follow a session for ever.

    The end of a turn is an event, which its readers get before their stream ends.
    """
    from chatcore.base.runner import turn_runner
    from chatcore.events.hub import event_hub

    try:
        turn_runner.stop(END_SECONDS)
    finally:
        event_hub.end_all()

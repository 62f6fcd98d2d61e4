"""Stop a web process so that its clients hear of it: answers end first, then connections."""

import asyncio
import contextlib
import socket

import uvicorn

DRAIN_SECONDS = 4.0  # for the last words of all answers


class DrainingServer(uvicorn.Server):
    """uvicorn's server; before it closes connections, it ends what is streamed over them.

    uvicorn waits for open requests and cuts them off, and only then says to the application that
    the process stops. So each stream would break without a word.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, end answers and streams, and then all else."""
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(end_answers), DRAIN_SECONDS)
        await super().shutdown()


def end_answers() -> None:
    """End the turns of this process, and then the streams that follow a session for ever.

    The end of a turn is an event, which its readers get before their stream ends.
    """
    from chatcore.events.hub import event_hub
    from chatcore.turns.runner import turn_runner

    try:
        turn_runner.stop(DRAIN_SECONDS)
    finally:
        event_hub.end_all()

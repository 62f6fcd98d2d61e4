"""Notice that a child process without an address of its own hangs: it is silent.

The child writes a byte every second or so to a pipe, whose number is in its environment. A pipe
needs no disk, which may be full, and no clock, which may be set.
"""

import asyncio
import os
from types import TracebackType
from typing import Self

PIPE_VARIABLE = "CHATCORE_HEARTBEAT_PIPE"


class HeartbeatPipe:
    """The supervisor's end of the pipe, `child_end` for the child, and the time of the last byte.

    Close the child's end when the child is started.
    """

    def __init__(self) -> None:
        self._reader, self.child_end = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self.child_end, False)
        self._heard = asyncio.Event()

    def __enter__(self) -> Self:
        asyncio.get_running_loop().add_reader(self._reader, self._note_heartbeats)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._reader)
        os.close(self._reader)
        os.close(self.child_end)

    async def wait_until_silent(self, seconds: float) -> None:
        """Return when nothing has been heard for so many seconds."""
        while True:
            try:
                await asyncio.wait_for(self._heard.wait(), seconds)
            except TimeoutError:
                return
            self._heard.clear()

    def _note_heartbeats(self) -> None:
        if os.read(self._reader, 4096):
            self._heard.set()

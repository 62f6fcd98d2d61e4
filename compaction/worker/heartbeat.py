"""Tell the supervisor of `chatcore serve` that this command lives.

It started the command with a pipe, and starts it again when nothing comes any more.
"""

import os
from contextlib import suppress
from time import monotonic

PIPE_VARIABLE = "CHATCORE_HEARTBEAT_PIPE"
INTERVAL = 1.0  # seconds


class Heartbeat:
    """The command's end of the pipe; without one, nothing is told."""

    def __init__(self) -> None:
        pipe = os.environ.pop(PIPE_VARIABLE, None)
        self._pipe = int(pipe) if pipe else None
        self._next_beat = 0.0

    def beat(self) -> None:
        """Write a byte, at most once in INTERVAL. Never waits and never raises."""
        if self._pipe is None or monotonic() < self._next_beat:
            return
        self._next_beat = monotonic() + INTERVAL
        with suppress(OSError):  # nobody reads it: the pipe is full, or closed
            os.write(self._pipe, b".")

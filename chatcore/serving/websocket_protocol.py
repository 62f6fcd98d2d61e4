"""The WebSocket protocol of the web server: uvicorn's, which also closes floods of small frames."""

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame


class GuardedWebSocketProtocol(WebSocketsSansIOProtocol):
    """One connection. A frame costs time, however short it is, and all of it on the event loop.

    uvicorn bounds the bytes of a message and not its frames: a million empty ones are 6 MB, and
    nobody else is answered for seconds. Who sends more than SMALL_FRAMES of them in a second, in
    parts of a message, pings or whole messages, is cut off.
    """

    SMALL_FRAMES = 1_000
    SMALL_BYTES = 1_024
    PART_BYTES = 4_096  # that are looked through at once

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._second = 0.0
        self._small_frame_count = 0

    def data_received(self, data: bytes) -> None:
        """Look through what came in parts, so that a flood is seen before all of it is parsed."""
        for start in range(0, len(data), self.PART_BYTES):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + self.PART_BYTES])

    def handle_cont(self, event: Frame) -> None:
        """Count a further part of a message."""
        if self._is_taken(event):
            super().handle_cont(event)

    def handle_text(self, event: Frame) -> None:
        """Count the first part of a message of text."""
        if self._is_taken(event):
            super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        """Count the first part of a message of bytes."""
        if self._is_taken(event):
            super().handle_bytes(event)

    def handle_pong(self, event: Frame) -> None:
        """Count an answer to a ping, also one that nobody asked for."""
        if self._is_taken(event):
            super().handle_pong(event)

    def handle_ping(self) -> None:
        """Count a ping, which is answered."""
        if self._is_taken(None):
            super().handle_ping()

    def _is_taken(self, frame: Frame | None) -> bool:
        if self.transport.is_closing():
            return False
        if frame is not None and len(frame.data) >= self.SMALL_BYTES:
            return True
        now = self.loop.time()
        if now - self._second >= 1:
            self._second, self._small_frame_count = now, 0
        self._small_frame_count += 1
        if self._small_frame_count > self.SMALL_FRAMES:
            self.conn.send_close(CloseCode.POLICY_VIOLATION, "too many small frames")
            self.handle_parser_exception()  # tells the application, and closes the connection
            return False
        return True

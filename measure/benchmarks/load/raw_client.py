"""One HTTP request whose answer is a stream of events, on a raw socket and without an SDK."""

import asyncio
import time
from abc import ABC, abstractmethod
from typing import cast

import httptools

BROKEN = "broken connection"


class EventClient(asyncio.Protocol, ABC):
    """Sends one request and reads the events of its answer.

    `end` is set when the answer is over, with the outcome in words: the last event, the status of a
    refusal, or what broke. `ended_at` is the time of that, in seconds of the monotonic clock.
    """

    def __init__(self, request: bytes) -> None:
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.ended_at = 0.0
        self.retry_after: str | None = None
        self.refusal = ""  # the body of an answer that is no stream
        self._request = request
        self._parser = httptools.HttpResponseParser(self)
        self._unparsed = b""
        self.unread = b""  # the frame that is being read
        self._transport: asyncio.Transport

    @abstractmethod
    def read_event(self, name: bytes, data: bytes, event_id: bytes) -> None:
        """Read one event; OpenAI's have no name."""

    def open_stream(self) -> None:
        """Note that the server has accepted the request."""

    def finish(self, outcome: str) -> None:
        """Close the connection; the first outcome counts."""
        if not self.end.done():
            self.ended_at = time.monotonic()
            self.end.set_result(outcome)
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Parse a part of the response."""
        try:
            self._parser.feed_data(data)
        except Exception as error:  # noqa: BLE001 - whatever is wrong is the outcome of this client
            self.finish(f"unreadable: {error.__context__ or error!r}: {self.unread!r}")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the header that says when to come back."""
        if name.lower() == b"retry-after":
            self.retry_after = value.decode()

    def on_headers_complete(self) -> None:
        """Note the status."""
        if self._parser.get_status_code() == 200:
            self.open_stream()

    def on_body(self, body: bytes) -> None:
        """Split the body into events."""
        self._unparsed += body
        if self._parser.get_status_code() != 200:
            return
        *frames, self._unparsed = self._unparsed.split(b"\n\n")
        for frame in frames:
            name, data, event_id = b"", b"", b""
            for line in frame.split(b"\n"):
                if line.startswith(b"event: "):
                    name = line[7:]
                elif line.startswith(b"data: "):
                    data = line[6:]
                elif line.startswith(b"id: "):
                    event_id = line[4:]
            if data:
                self.unread = frame
                self.read_event(name, data, event_id)
                self.unread = b""

    def on_message_complete(self) -> None:
        """Note a refusal, or a stream that ended without its last event."""
        status = self._parser.get_status_code()
        if status != 200:
            self.refusal = self._unparsed.decode(errors="replace")
        self.finish("stream without its last event" if status == 200 else f"status {status}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Note a connection that broke."""
        self.finish(f"{BROKEN} {exc or ''}".strip())


def build_request(
    method: str, path: str, token: str, body: bytes = b"", *, last_event: int | None = None
) -> bytes:
    """Return the bytes of a request, which asks for the events after `last_event`, if any."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {token}",
        f"Content-Length: {len(body)}",
    ]
    if body:
        lines.append("Content-Type: application/json")
    if last_event is not None:
        lines.append(f"Last-Event-ID: {last_event}")
    return "\r\n".join([*lines, "", ""]).encode() + body

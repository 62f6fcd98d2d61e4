"""One HTTP/1.1 connection, read in as few steps as possible.

`httpx2` reads a stream through seven layers of generators, one step for each chunk of the wire.
At fifty pieces of text a second these steps cost more than everything else that is done with them.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import httptools
import httpx2

# Bytes that may come without any body: headers, trailers, extensions of chunks.
MAX_OVERHEAD_BYTES = 1_000_000
# What came meanwhile is handled together. Nobody sees the difference to 20 updates a second.
PACE_SECONDS = 0.05

Header = tuple[bytes, bytes]


@dataclass
class ResponseHead:
    """The status and the headers of a response."""

    status: int = 0
    reason: bytes = b""
    headers: list[Header] = field(default_factory=list)
    has_length: bool = False
    """False if the response ends where its connection ends."""


class Pacer:
    """Lets all streams of an event loop read at the same moments.

    Each waking of the event loop costs more than the reading, so one waking serves all.
    """

    def __init__(self) -> None:
        self._calls: list[Callable[[], None]] = []

    def call_next(self, call: Callable[[], None]) -> None:
        """Call this at the next moment, after at most PACE_SECONDS."""
        if not self._calls:
            asyncio.get_running_loop().call_later(PACE_SECONDS, self._call_all)
        self._calls.append(call)

    def _call_all(self) -> None:
        calls = self._calls
        self._calls = []
        for call in calls:
            call()


class HttpConnection(asyncio.Protocol):
    """Carries one request at a time.

    While nobody waits for the body, nothing is read from the socket. So what the server sends
    meanwhile is bounded by the buffers of the network, and comes in one piece.
    """

    def __init__(self) -> None:
        self.has_received = False
        """True if a byte of the newest response has arrived."""
        self.is_closed = False
        self._head = ResponseHead()
        self._has_head = False
        self._body_chunks: list[bytes] = []
        self._overhead_bytes = 0
        self._is_idle = True
        self._is_complete = True
        self._can_be_reused = False
        self._error: httpx2.TransportError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._parser = httptools.HttpResponseParser(self)
        # Servers are sloppy, and a client with one request at a time loses nothing by it.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_chunked_length=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    @property
    def can_be_reused(self) -> bool:
        """Return True if the response is complete and the server keeps the connection."""
        return self._is_complete and self._can_be_reused and not self.is_closed

    def send_request(self, request: bytes) -> None:
        """Send a request with its body; `request` is what goes over the wire."""
        self.has_received = False
        self._has_head = False
        self._head = ResponseHead()
        self._overhead_bytes = 0
        self._is_idle = False
        self._is_complete = False
        self._can_be_reused = False
        self._transport.write(request)

    async def read_head(self) -> ResponseHead:
        """Return the beginning of the response. Raises httpx2.TransportError."""
        while not self._has_head:
            await self._wait_for_data(None)
        return self._head

    async def read_body(self, pacer: Pacer | None) -> bytes:
        """Return all of the body that has arrived since the last time, b"" at its end.

        Waits for at least one byte. With a pacer, the socket is not read before its next moment.
        Raises httpx2.TransportError.
        """
        while not (self._body_chunks or self._is_complete):
            await self._wait_for_data(pacer)
        body = b"".join(self._body_chunks)
        self._body_chunks.clear()
        return body

    def mark_idle(self) -> None:
        """Note that no response is expected, and watch for the server closing the connection."""
        self._is_idle = True
        self._transport.resume_reading()

    def close(self) -> None:
        """Close the connection at once."""
        self.is_closed = True
        self._transport.abort()

    def resume_reading(self) -> None:
        """Read the socket, unless nobody waits for it any more."""
        if self._waiter and not self.is_closed:
            self._transport.resume_reading()

    async def _wait_for_data(self, pacer: Pacer | None) -> None:
        if self._error:
            raise self._error
        if self.is_closed:
            raise httpx2.RemoteProtocolError("The server closed the connection.")
        self._waiter = asyncio.get_running_loop().create_future()
        if pacer:
            pacer.call_next(self.resume_reading)
        else:
            self._transport.resume_reading()
        try:
            await self._waiter
        finally:
            self._waiter = None
            if not self.is_closed:
                self._transport.pause_reading()

    def _wake_reader(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        if self._is_idle:
            # An answer to nothing: the server is about to close, or speaks another protocol.
            return self.close()
        self.has_received = True
        self._overhead_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._can_be_reused = False
            if not self._is_complete:
                self._error = httpx2.RemoteProtocolError(str(error))
        if self._overhead_bytes > MAX_OVERHEAD_BYTES:
            self._error = httpx2.RemoteProtocolError("The server sends headers without end.")
        self._wake_reader()

    def eof_received(self) -> None:
        self._end_input(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_input(exc)

    def _end_input(self, cause: Exception | None) -> None:
        self.is_closed = True
        if not self._is_complete and self._error is None:
            if self._has_head and not self._head.has_length and cause is None:
                self._is_complete = True
            elif self.has_received or cause is None:
                self._error = httpx2.RemoteProtocolError(
                    "The server closed the connection before its response was complete."
                )
            else:
                self._error = httpx2.ReadError(str(cause))
        self._wake_reader()

    # What the parser calls.

    def on_status(self, status: bytes) -> None:
        self._head.reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._has_head:
            return  # a trailer
        self._head.headers.append((name, value))
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._head.has_length = True

    def on_headers_complete(self) -> None:
        self._head.status = self._parser.get_status_code()
        self._has_head = self._head.status >= 200

    def on_body(self, body: bytes) -> None:
        self._overhead_bytes = 0
        self._body_chunks.append(body)

    def on_message_complete(self) -> None:
        if not self._has_head:
            self._head = ResponseHead()  # that was "100 Continue" or the like
            return
        self._is_complete = True
        self._can_be_reused = self._parser.should_keep_alive()

"""How the SDKs' HTTP clients reach a provider: in few steps, over connections that are reused."""

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator
from weakref import WeakKeyDictionary

import httpx2

from chatcore.providers.happy_eyeballs import open_socket
from chatcore.providers.http_connection import HttpConnection, Pacer, ResponseHead

IDLE_SECONDS = 30.0
MAX_IDLE_CONNECTIONS = 32
STALE_SECONDS = 2.0
MAX_ERROR_BYTES = 256_000  # the SDKs read the body of an error as a whole
# From the beginning of a stream, everything is read as it comes.
UNPACED_SECONDS = 0.25

Origin = tuple[str, str, int]


class StreamingTransport(httpx2.AsyncBaseTransport):
    """The HTTP/1.1 of one event loop: connects, sends, and gives connections back for reuse.

    The caller sets a time limit for the response; only connecting has one here. Closing a client
    leaves the transport open for the others; it is closed with its event loop.
    """

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        self._ssl_context = ssl_context
        self._pacer = Pacer()
        # The newest is reused first. Each has a timer that closes it.
        self._idle_connections: list[tuple[Origin, HttpConnection, asyncio.TimerHandle]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return its response as soon as the headers are there."""
        origin = _get_origin(request.url)
        wire_request = _encode_request(request, await request.aread())
        connection = self._take_idle_connection(origin)
        if connection:
            start = time.monotonic()
            try:
                return await self._exchange(connection, origin, wire_request)
            except httpx2.TransportError:
                # The server may have closed it while the request was on its way; that shows at
                # once. Whatever fails later, or on a new connection, is an error.
                if connection.has_received or time.monotonic() - start > STALE_SECONDS:
                    raise
        connection = await self._open_connection(origin, request)
        return await self._exchange(connection, origin, wire_request)

    async def aclose(self) -> None:
        """Do nothing: a client is closed after each answer, the transport with its event loop."""

    def close_idle_connections(self) -> None:
        """Close all connections that no response uses."""
        for _, connection, timer in self._idle_connections:
            timer.cancel()
            connection.close()
        self._idle_connections.clear()

    def release_connection(self, origin: Origin, connection: HttpConnection) -> None:
        """Keep a connection for another request, or close it if it cannot be reused."""
        if not connection.can_be_reused:
            return connection.close()
        connection.mark_idle()
        timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, connection.close)
        self._idle_connections.append((origin, connection, timer))
        if len(self._idle_connections) > MAX_IDLE_CONNECTIONS:
            _, oldest_connection, oldest_timer = self._idle_connections.pop(0)
            oldest_timer.cancel()
            oldest_connection.close()

    def _take_idle_connection(self, origin: Origin) -> HttpConnection | None:
        live_entries = []
        connection = None
        for entry in reversed(self._idle_connections):
            if entry[1].is_closed:
                entry[2].cancel()
            elif connection is None and entry[0] == origin:
                entry[2].cancel()
                connection = entry[1]
            else:
                live_entries.append(entry)
        self._idle_connections = live_entries[::-1]
        return connection

    async def _open_connection(self, origin: Origin, request: httpx2.Request) -> HttpConnection:
        scheme, host, port = origin
        timeout = request.extensions.get("timeout", {}).get("connect")
        is_secure = scheme == "https"
        try:
            async with asyncio.timeout(timeout):
                _, connection = await asyncio.get_running_loop().create_connection(
                    HttpConnection,
                    sock=await open_socket(host, port),
                    ssl=self._ssl_context if is_secure else None,
                    server_hostname=host if is_secure else None,
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(str(error), request=request) from error
        except OSError as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        return connection

    async def _exchange(
        self, connection: HttpConnection, origin: Origin, wire_request: bytes
    ) -> httpx2.Response:
        try:
            connection.send_request(wire_request)
            head = await connection.read_head()
        except BaseException:
            connection.close()
            raise
        return httpx2.Response(
            head.status,
            headers=head.headers,
            stream=_ResponseBody(self, self._pacer, connection, origin, head),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": head.reason},
        )


class _ResponseBody(httpx2.AsyncByteStream):
    def __init__(
        self,
        transport: StreamingTransport,
        pacer: Pacer,
        connection: HttpConnection,
        origin: Origin,
        head: ResponseHead,
    ) -> None:
        self._transport = transport
        self._pacer = pacer
        self._connection: HttpConnection | None = connection
        self._origin = origin
        self._is_error = not 200 <= head.status < 300

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        unpaced_until = loop.time() + UNPACED_SECONDS
        byte_count = 0
        while self._connection:
            pacer = self._pacer if loop.time() > unpaced_until else None
            chunk = await self._connection.read_body(pacer)
            byte_count += len(chunk)
            if not chunk or (self._is_error and byte_count > MAX_ERROR_BYTES):
                return  # the rest of a page says no more about the error
            yield chunk

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            self._transport.release_connection(self._origin, connection)


_transports: WeakKeyDictionary[asyncio.AbstractEventLoop, StreamingTransport] = WeakKeyDictionary()
_closers: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[None]] = WeakKeyDictionary()


async def get_transport(ssl_context: ssl.SSLContext) -> StreamingTransport:
    """Return the transport of the running event loop."""
    loop = asyncio.get_running_loop()
    transport = _transports.get(loop)
    if transport is None:
        transport = _transports[loop] = StreamingTransport(ssl_context)
        _closers[loop] = _close_with_loop(transport)
        await anext(_closers[loop])
    return transport


async def _close_with_loop(transport: StreamingTransport) -> AsyncGenerator[None]:
    """Close the idle connections when the event loop ends.

    `asyncio.run` and its like close every asynchronous generator that has begun before they close
    their loop, and a loop has no other hook for it.
    """
    try:
        yield
    finally:
        transport.close_idle_connections()


def _get_origin(url: httpx2.URL) -> Origin:
    default_port = 443 if url.scheme == "https" else 80
    return url.scheme, url.raw_host.decode(), url.port or default_port


def _encode_request(request: httpx2.Request, body: bytes) -> bytes:
    """Return a request as it goes over the wire. Raises httpx2.LocalProtocolError."""
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [
        b"%s: %s" % header
        for header in request.headers.raw
        if header[0].lower() not in (b"content-length", b"transfer-encoding")
    ]
    lines.append(b"Content-Length: %d" % len(body))
    if any(byte in line for line in lines for byte in b"\r\n\0"):
        raise httpx2.LocalProtocolError("A header contains a line end.", request=request)
    return b"\r\n".join([*lines, b"", body])

"""Servers that answer with bytes, and a client that reads them as the SDKs' clients do."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import httpx2

from chatcore.providers.http_transport import StreamingTransport

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serve(answer: Answer, *, ssl_context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve a handler of raw connections, and yield its address."""
    handlers: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(cast(asyncio.Task[None], asyncio.current_task()))
        try:
            await answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client left
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=ssl_context)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"{'https' if ssl_context else 'http'}://127.0.0.1:{port}/"
        if handlers:
            await asyncio.wait(handlers, timeout=10)


@asynccontextmanager
async def open_client(
    ssl_context: ssl.SSLContext | None = None,
) -> AsyncIterator[httpx2.AsyncClient]:
    transport = StreamingTransport(ssl_context or ssl.create_default_context())
    try:
        async with httpx2.AsyncClient(transport=transport) as client:
            yield client
    finally:
        transport.close_idle_connections()


def answer_with(*responses: bytes, closes: bool = False) -> Answer:
    """Return a handler that sends these bytes, one response to each request of a connection."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for response in responses:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(response)
            await writer.drain()
        if not closes:
            await reader.read()

    return answer

"""Servers that answer with bytes."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

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
        # A client that keeps its connection would let `answer_with` wait for a next request.
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


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

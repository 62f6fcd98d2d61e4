"""The HTTP clients below the SDKs, as the SDKs offer them, and kept for more calls.

They are aiohttp's, which are quicker, or without the extra fast those of httpx2.
A client keeps its connections and the cookies of its servers. So each provider has one of its own,
and no key's cookie goes out with another key.
"""

import asyncio
import atexit
import functools
import ipaddress
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2

from chatcore.base.extras import has_extra
from chatcore.base.net import certificates
from chatcore.providers.base import Connection
from chatcore.providers.waits import parse_retry_after

USES_AIOHTTP = has_extra("fast")
if USES_AIOHTTP:
    import aiohttp

MAX_CONNECTIONS = 10_000  # to one provider; aiohttp takes 100 where no number is given
IDLE_SECONDS = 30.0
STALE_SECONDS = 2.0
CLOSE_SECONDS = 2.0
MAX_ERROR_BYTES = 256_000  # the SDKs read the body of an error as a whole

Identity = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Call:
    """What the hooks of a client must know of the call whose request or response they see."""

    deadline: float
    """The time of the event loop at which the call times out."""
    keep_request: Callable[[bytes], None] | None


_current_call: ContextVar[Call] = ContextVar("provider_call")
_clients: dict[asyncio.AbstractEventLoop, dict[Identity, httpx2.AsyncClient]] = {}
_closers: dict[asyncio.AbstractEventLoop, AsyncGenerator[None]] = {}


async def enter_call(sdk: object, connection: Connection) -> httpx2.AsyncClient:
    """Return the client for a call that the current task is about to make.

    Nobody closes it: it is closed with its event loop. Until the next call, the task's requests
    are those of this one.
    """
    loop = asyncio.get_running_loop()
    _current_call.set(
        Call(
            deadline=loop.time() + connection.timeout_seconds,
            keep_request=connection.keep_request,
        )
    )
    if loop not in _clients:
        _clients[loop] = {}
        _closers[loop] = _close_with_loop(loop)
        await anext(_closers[loop])
    clients = _clients[loop]
    identity = _identify(connection)
    if identity not in clients:
        clients[identity] = _build_client(sdk, connection)
    return clients[identity]


@atexit.register
def _close_at_exit() -> None:
    """Close the clients of loops that run in a thread until the process ends, as that of turns."""

    async def close(closer: AsyncGenerator[None]) -> None:
        await closer.aclose()

    for loop, closer in list(_closers.items()):
        if loop.is_running():
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(close(closer), loop).result(CLOSE_SECONDS)


async def _close_with_loop(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None]:
    """Close the clients when the event loop ends.

    `asyncio.run` and its like close every asynchronous generator that has begun before they close
    their loop, and a loop has no other hook for it.
    """
    try:
        yield
    finally:
        del _closers[loop]
        for client in _clients.pop(loop).values():
            await client.aclose()


def _identify(connection: Connection) -> Identity:
    """Return what tells a provider's row from others: its address and what it signs in with."""
    headers = connection.options.get("headers") or {}
    return (connection.protocol, connection.base_url, connection.api_key, repr(headers))


def _build_client(sdk: object, connection: Connection) -> httpx2.AsyncClient:
    return _get_client_class(sdk)(
        verify=certificates.get_ssl_context(),
        limits=httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=IDLE_SECONDS),
        event_hooks={"request": [_keep_request], "response": [_review_response]},
        # A proxy from the environment cannot reach this machine's own servers.
        trust_env=not _is_loopback(connection.base_url),
    )


@functools.cache
def _get_client_class(sdk: Any) -> type[httpx2.AsyncClient]:
    name = "DefaultAioHttpClient" if USES_AIOHTTP else "DefaultAsyncHttpxClient"
    sdk_client: type[httpx2.AsyncClient] = getattr(sdk, name)

    class ProviderClient(sdk_client):  # type: ignore[misc, valid-type]
        def __init__(self, **options: object) -> None:
            super().__init__(**options)
            self.sdk_clients: dict[str, object] = {}  # filled by client.build_client

        async def send(
            self, request: httpx2.Request, *, stream: bool = False, **options: object
        ) -> httpx2.Response:
            """Send a request, and once more if its kept connection was closed meanwhile.

            A server may close one while a request is on its way; that shows at once, before a
            response begins. aiohttp sends only those again that change nothing.
            """
            start = time.monotonic()
            try:
                response: httpx2.Response = await super().send(request, stream=True, **options)
            except httpx2.TransportError as error:
                if not _is_closing(error) or time.monotonic() - start > STALE_SECONDS:
                    raise
                response = await super().send(request, stream=True, **options)
            if not stream:
                try:
                    await response.aread()
                except BaseException:
                    await response.aclose()
                    raise
            return response

    return ProviderClient


def _is_closing(error: httpx2.TransportError) -> bool:
    """Return True for a connection that was made, and closed before a response came."""
    if not USES_AIOHTTP:
        return isinstance(error, (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError))
    cause = error.__cause__
    is_closing = isinstance(cause, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError))
    return is_closing and not isinstance(cause, aiohttp.ClientConnectorError)


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _keep_request(request: httpx2.Request) -> None:
    keep_request = _current_call.get().keep_request
    if keep_request:
        keep_request(await request.aread())


async def _review_response(response: httpx2.Response) -> None:
    """Let the SDK raise an error whose wait would last too long, and bound the error's body."""
    # The SDK waits as long as a response asks. A wait beyond the deadline could only time out, so
    # the error of the response is raised at once instead.
    wait = parse_retry_after(response.headers)
    deadline = _current_call.get().deadline
    if wait is not None and asyncio.get_running_loop().time() + wait >= deadline:
        response.headers["x-should-retry"] = "false"
    if not response.is_success:
        response.stream = _ErrorBody(cast(httpx2.AsyncByteStream, response.stream))


class _ErrorBody(httpx2.AsyncByteStream):
    """The beginning of a body. The rest of a page says no more about the error."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        byte_count = 0
        async for chunk in self._stream:
            byte_count += len(chunk)
            if byte_count > MAX_ERROR_BYTES:
                return
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()

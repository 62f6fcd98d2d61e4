"""What both SDKs need for one call: a client, a deadline, and the parameters."""

import asyncio
import functools
import importlib
import inspect
import ipaddress
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from chatcore.providers.base import Connection, Request
from chatcore.providers.error_mapping import parse_retry_after
from chatcore.providers.errors import ProviderAuth, ProviderUnavailable

_CONNECT_SECONDS = 10.0
# The request itself sets these, or they control the SDK: a session's params must not.
_RESERVED_PARAMS = {
    "model",
    "messages",
    "system",
    "tools",
    "n",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
}
_TOOL_PARAMS = frozenset({"tool_choice", "parallel_tool_calls"})
_RESERVED_PARAMS |= {"extra_headers", "extra_query", "extra_body", "timeout", "self"}


async def load_sdk(name: str) -> None:
    """Import an SDK on another thread.

    The first time that takes seconds of CPU, and other turns stream on this event loop meanwhile.
    """
    await asyncio.to_thread(importlib.import_module, name)


def build_client_options(sdk: Any, connection: Connection) -> dict[str, Any]:
    """Return the arguments for an SDK's client.

    Raises ProviderAuth for an unusable key, and if there is none and the address is the vendor's.
    """
    import httpx2

    timeout_seconds = connection.timeout_seconds
    deadline = asyncio.get_running_loop().time() + timeout_seconds

    # The SDK waits as long as a response asks. A wait beyond the deadline could only time out, so
    # the error of the response is raised at once instead.
    async def refuse_late_retry(response: httpx2.Response) -> None:
        wait = parse_retry_after(response.headers)
        if wait is not None and asyncio.get_running_loop().time() + wait >= deadline:
            response.headers["x-should-retry"] = "false"

    # A proxy from the environment cannot reach this machine's own servers.
    mounts = dict.fromkeys(("http://", "https://")) if _is_loopback(connection.base_url) else {}
    http_client = sdk.DefaultAsyncHttpxClient(
        verify=_build_ssl_context(),
        mounts=mounts,
        event_hooks={"response": [refuse_late_retry]},
    )
    return {
        "api_key": _require_api_key(connection),
        "base_url": connection.base_url or None,
        "max_retries": connection.max_retries,
        "timeout": httpx2.Timeout(timeout_seconds, connect=min(timeout_seconds, _CONNECT_SECONDS)),
        "default_headers": connection.options.get("headers"),
        "default_query": connection.options.get("query"),
        "http_client": http_client,
    }


async def stream_events(
    pending_stream: Awaitable[Any], timeout_seconds: float
) -> AsyncGenerator[Any]:
    """Yield the events of a stream, and close the connection in every case.

    The first event must come within the timeout, with all retries and their waits, and each further
    one within the same time again. Raises TimeoutError, and ProviderUnavailable if no event came.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    # One deadline for both waits: headers may come at once, and the first event never.
    async with asyncio.timeout_at(deadline):
        stream = await pending_stream
    try:
        event_count = 0
        while True:
            async with asyncio.timeout_at(deadline):
                event = await anext(stream, None)
            if event is None:
                break
            event_count += 1
            yield event
            deadline = loop.time() + timeout_seconds
        if not event_count:
            content_type = (
                stream.response.headers.get("content-type", "").partition(";")[0] or "nothing"
            )
            raise ProviderUnavailable(f"The provider sent an empty stream of {content_type}.")
    finally:
        await stream.close()


def select_params(request: Request) -> dict[str, Any]:
    """Return the request's params, without those about tools if the request has no tools.

    Providers refuse such params there.
    """
    if request.tools:
        return request.params
    return {name: value for name, value in request.params.items() if name not in _TOOL_PARAMS}


def to_sdk_arguments(
    create: Callable[..., Any], params: dict[str, Any], extra_body: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments for an SDK's `create` from a session's params.

    Params that the SDK does not know go into the body as they are. Params cannot replace what the
    request itself sets, such as model, messages and tools; the operator's `extra_body` replaces
    params of the same name.
    """
    sdk_parameters = inspect.signature(create).parameters
    session_params = {
        name: value
        for name, value in params.items()
        if name not in _RESERVED_PARAMS and value is not None
    }
    arguments = {name: value for name, value in session_params.items() if name in sdk_parameters}
    body = {name: value for name, value in session_params.items() if name not in sdk_parameters}
    body |= extra_body
    if body:
        arguments["extra_body"] = body
    return arguments


def _require_api_key(connection: Connection) -> str:
    key = connection.api_key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ProviderAuth(
            "The provider's API key contains characters that keys do not have; enter it again."
        )
    if not key and not connection.base_url:
        raise ProviderAuth("There is no API key for this provider.")
    return key or "none"  # local servers need no key, but the SDKs require one


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@functools.cache
def _build_ssl_context() -> ssl.SSLContext:
    # Cached, because it takes 25 ms of CPU, which every client would need again.
    import httpx2

    return httpx2.create_ssl_context()

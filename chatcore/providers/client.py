"""What both SDKs need around one call: a client, a clock, and the parameters they take."""

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
# What the request itself says, and what steers the SDK: a session's params have no say in these.
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
    """Import an SDK on another thread: it takes seconds of CPU the first time, and other turns stream on this loop."""
    await asyncio.to_thread(importlib.import_module, name)


def build_client_options(sdk: Any, connection: Connection) -> dict[str, Any]:
    """Arguments for an SDK's client. Raises ProviderAuth when there is no usable key and the address is the vendor's own."""
    import httpx2

    timeout_seconds = connection.timeout_seconds
    deadline = asyncio.get_running_loop().time() + timeout_seconds

    async def refuse_late_retry(response: httpx2.Response) -> None:
        wait = parse_retry_after(response.headers)
        if wait is not None and asyncio.get_running_loop().time() + wait >= deadline:
            response.headers["x-should-retry"] = "false"

    http_client = sdk.DefaultAsyncHttpxClient(
        verify=_build_ssl_context(),
        mounts=dict.fromkeys(("http://", "https://")) if _is_loopback(connection.base_url) else {},
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
    """The events of a stream. The first must come within `seconds`, retries and their waits included; each next one within as many.

    Raises TimeoutError; ProviderUnavailable when there was no event at all. Closes the connection, however it ends.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
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
    """The request's params; what they say of tools is refused by providers where no tools are offered."""
    return (
        request.params
        if request.tools
        else {name: value for name, value in request.params.items() if name not in _TOOL_PARAMS}
    )


def to_sdk_arguments(
    create: Callable[..., Any], params: dict[str, Any], extra_body: dict[str, Any]
) -> dict[str, Any]:
    """Arguments for `create` made of a session's params: what the SDK does not know goes into the body as it is.

    What the request itself says (model, messages, tools, …) cannot be said by params; the operator's `extra` body wins over them.
    """
    sdk_parameters = inspect.signature(create).parameters
    session_params = {
        name: value
        for name, value in params.items()
        if name not in _RESERVED_PARAMS and value is not None
    }
    arguments = {name: value for name, value in session_params.items() if name in sdk_parameters}
    body = {
        name: value for name, value in session_params.items() if name not in sdk_parameters
    } | extra_body
    return arguments | ({"extra_body": body} if body else {})


def _require_api_key(connection: Connection) -> str:
    key = connection.api_key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ProviderAuth("The provider's API key has characters that no key has; enter it again.")
    if not key and not connection.base_url:
        raise ProviderAuth("There is no API key for this provider.")
    return key or "none"  # local servers want none, the SDKs want one


def _is_loopback(base_url: str) -> bool:
    """A proxy named in the environment cannot reach this machine's own servers."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@functools.cache
def _build_ssl_context() -> ssl.SSLContext:
    """Made once: it costs 25 ms of CPU, which every client would pay again."""
    import httpx2

    return httpx2.create_ssl_context()

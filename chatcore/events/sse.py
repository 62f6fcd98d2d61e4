"""Answers that stay open for hours: Django says who may read what, then the connection is served without the thread that asked.

Every streaming response of Django's holds a thread of its own until it ends, and what its thread has opened. A view that gives its stream
to `hand_over` answers with the headers alone; `chatcore/asgi.py` sends them and goes on with the stream.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from django.db import connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

EXTENSION = "chatcore.events.sse"  # in the ASGI scope: where a stream is left


def hand_over(
    request: HttpRequest,
    body: AsyncIterator[bytes],
    *,
    content_type: str,
    headers: Mapping[str, str],
) -> HttpResponseBase:
    """The response of a view: headers alone where the server takes the stream, else Django's own streaming response."""
    place = (getattr(request, "scope", {}).get("extensions") or {}).get(EXTENSION)
    if place is None:
        return StreamingHttpResponse(body, content_type=content_type, headers=headers)
    place["body"] = body
    connections.close_all()  # of this thread, which ends with the request
    return HttpResponse(content_type=content_type, headers=headers)


async def serve(django: Any, scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve a request through Django, and the stream that it left, if it left one."""
    place: dict[str, AsyncIterator[bytes]] = {}
    head: list[dict[str, Any]] = []

    async def sent(message: dict[str, Any]) -> None:
        if "body" not in place:
            await send(message)
        elif message["type"] == "http.response.start":
            head.append(message)

    await django(
        {**scope, "extensions": {**(scope.get("extensions") or {}), EXTENSION: place}},
        receive,
        sent,
    )
    for start in head:
        headers = [
            (name, value) for name, value in start["headers"] if name.lower() != b"content-length"
        ]
        await send({**start, "headers": headers})
        with contextlib.suppress(
            asyncio.CancelledError
        ):  # the server stops: the connection breaks, without a trace in the log
            await _until_gone(place["body"], receive, send)


async def _until_gone(body: AsyncIterator[bytes], receive: Any, send: Any) -> None:
    """Send it to its end, or until the client has left. What goes wrong in it is raised, so that the connection breaks."""
    telling, leaving = (
        asyncio.ensure_future(_told(body, send)),
        asyncio.ensure_future(_left(receive)),
    )
    try:
        await asyncio.wait((telling, leaving), return_when=asyncio.FIRST_COMPLETED)
        if telling.done():
            telling.result()
    finally:
        for task in (telling, leaving):
            task.cancel()
        await asyncio.gather(telling, leaving, return_exceptions=True)
        if isinstance(body, AsyncGenerator):
            await body.aclose()


async def _told(body: AsyncIterator[bytes], send: Any) -> None:
    async for part in body:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _left(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

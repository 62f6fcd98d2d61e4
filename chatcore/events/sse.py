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

SCOPE_EXTENSION = "chatcore.events.sse"  # in the ASGI scope: where a stream is left


def hand_over_stream(
    request: HttpRequest,
    body: AsyncIterator[bytes],
    *,
    content_type: str,
    headers: Mapping[str, str],
) -> HttpResponseBase:
    """The response of a view: headers alone where the server takes the stream, else Django's own streaming response."""
    stream_slot = (getattr(request, "scope", {}).get("extensions") or {}).get(SCOPE_EXTENSION)
    if stream_slot is None:
        return StreamingHttpResponse(body, content_type=content_type, headers=headers)
    stream_slot["body"] = body
    connections.close_all()  # of this thread, which ends with the request
    return HttpResponse(content_type=content_type, headers=headers)


async def serve_request(django_app: Any, scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve a request through Django, and the stream that it left, if it left one."""
    stream_slot: dict[str, AsyncIterator[bytes]] = {}
    response_starts: list[dict[str, Any]] = []

    async def send_or_hold(message: dict[str, Any]) -> None:
        if "body" not in stream_slot:
            await send(message)
        elif message["type"] == "http.response.start":
            response_starts.append(message)

    await django_app(
        {**scope, "extensions": {**(scope.get("extensions") or {}), SCOPE_EXTENSION: stream_slot}},
        receive,
        send_or_hold,
    )
    for response_start in response_starts:
        headers = [
            (name, value)
            for name, value in response_start["headers"]
            if name.lower() != b"content-length"
        ]
        await send({**response_start, "headers": headers})
        with contextlib.suppress(
            asyncio.CancelledError
        ):  # the server stops: the connection breaks, without a trace in the log
            await _send_until_disconnect(stream_slot["body"], receive, send)


async def _send_until_disconnect(body: AsyncIterator[bytes], receive: Any, send: Any) -> None:
    """Send it to its end, or until the client has left. What goes wrong in it is raised, so that the connection breaks."""
    send_task, disconnect_task = (
        asyncio.ensure_future(_send_body(body, send)),
        asyncio.ensure_future(_wait_for_disconnect(receive)),
    )
    try:
        await asyncio.wait((send_task, disconnect_task), return_when=asyncio.FIRST_COMPLETED)
        if send_task.done():
            send_task.result()
    finally:
        for task in (send_task, disconnect_task):
            task.cancel()
        await asyncio.gather(send_task, disconnect_task, return_exceptions=True)
        if isinstance(body, AsyncGenerator):
            await body.aclose()


async def _send_body(body: AsyncIterator[bytes], send: Any) -> None:
    async for chunk in body:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _wait_for_disconnect(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

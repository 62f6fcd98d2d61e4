"""Serve responses that stay open for hours without holding a thread for each of them.

Django's own streaming response holds one thread, and what that thread has opened, until it ends.
A view that gives its stream to `hand_over_stream` answers with the headers alone; the ASGI
application (`chatcore/asgi.py`) then sends these headers and continues with the stream on the
event loop. Django decides who may read what, and its middleware has run by then.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from django.db import connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

SCOPE_EXTENSION = "chatcore.long_responses"  # the key in the ASGI scope under which a view puts it


def hand_over_stream(
    request: HttpRequest,
    body: AsyncIterator[bytes],
    *,
    content_type: str,
    headers: Mapping[str, str],
) -> HttpResponseBase:
    """Return the response for a view: headers only, while the server sends `body` afterwards.

    Under a server without this extension, return Django's own streaming response.
    """
    stream_slot = (getattr(request, "scope", {}).get("extensions") or {}).get(SCOPE_EXTENSION)
    if stream_slot is None:
        return StreamingHttpResponse(body, content_type=content_type, headers=headers)
    stream_slot["body"] = body
    connections.close_all()  # the connections of this thread, which ends with the request
    return HttpResponse(content_type=content_type, headers=headers)


async def serve_request(django_app: Any, scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve a request through Django, and then the stream that its view handed over, if any."""
    stream_slot: dict[str, AsyncIterator[bytes]] = {}
    response_starts: list[dict[str, Any]] = []

    async def send_or_hold(message: dict[str, Any]) -> None:
        # Django would end the response after its (empty) body. While a stream is waiting, the
        # start is held back and the empty body dropped.
        if "body" not in stream_slot:
            await send(message)
        elif message["type"] == "http.response.start":
            response_starts.append(message)

    extensions = {**(scope.get("extensions") or {}), SCOPE_EXTENSION: stream_slot}
    await django_app({**scope, "extensions": extensions}, receive, send_or_hold)
    for response_start in response_starts:
        headers = [
            (name, value)
            for name, value in response_start["headers"]
            if name.lower() != b"content-length"
        ]
        await send({**response_start, "headers": headers})
        # When the server stops, it cancels this task. The connection breaks, and the client
        # resumes elsewhere; a traceback in the log would tell nobody anything.
        with contextlib.suppress(asyncio.CancelledError):
            await _send_until_disconnect(stream_slot["body"], receive, send)


async def _send_until_disconnect(body: AsyncIterator[bytes], receive: Any, send: Any) -> None:
    """Send the body until it ends or the client disconnects.

    Raises what the body raises, so that the connection breaks instead of ending normally.
    """
    send_task = asyncio.ensure_future(_send_body(body, send))
    disconnect_task = asyncio.ensure_future(_wait_for_disconnect(receive))
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

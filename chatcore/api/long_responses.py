"""Serve responses that stay open for hours without holding a thread for each of them.

Django's own streaming response holds one thread, and what that thread has opened, until it ends.
A view that gives its stream to `hand_over_stream` answers with the headers alone; the ASGI
application (`chatcore/asgi.py`) then sends these headers and continues with the stream on the
event loop. Django decides who may read what, and its middleware has run by then. Who signs out, or
is signed out, while a stream is open, sees its end within seconds (chatcore/accounts).
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from typing import TypeVar

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from chatcore.accounts.senders import Sender, get_sender
from chatcore.accounts.sign_out_watch import sign_out_watch
from chatcore.base.asgi import Application, Message, Receive, Scope, Send

SCOPE_EXTENSION = "chatcore.long_responses"  # the key in the ASGI scope under which a view puts it
LAST_MESSAGE = {"type": "http.response.body", "body": b""}
LAST_SECONDS = 1.0

T = TypeVar("T")


class Handover:
    """The stream that a view hands over to the server, and what is called when it has ended."""

    def __init__(self) -> None:
        self.body: AsyncIterator[bytes] | None = None
        self.sender: Sender | None = None
        self._on_end: Callable[[], object] | None = None
        self._is_over = False
        # The view runs in a thread, and goes on there when its client has left.
        self._lock = threading.Lock()

    def accept(
        self,
        body: AsyncIterator[bytes],
        sender: Sender | None,
        on_end: Callable[[], object] | None,
    ) -> None:
        """Take the stream over. If the client has left, it is over already."""
        with self._lock:
            self.sender = sender
            self.body = body
            self._on_end = on_end
            is_late = self._is_over
        if is_late:
            async_to_sync(close_body)(body)
            self.end()

    def watch(self, on_end: Callable[[], object]) -> None:
        """Have `on_end` called at the end of a response that may not become a stream."""
        with self._lock:
            self._on_end = on_end
            is_late = self._is_over
        if is_late:
            self.end()

    def end(self) -> None:
        """Note that the response has ended."""
        with self._lock:
            self._is_over = True
            on_end, self._on_end = self._on_end, None
        if on_end:
            on_end()


class _ClosingStream(StreamingHttpResponse):
    """A stream that says when it has ended, or the client has left."""

    def __init__(
        self, body: AsyncIterator[bytes], on_end: Callable[[], object] | None, **options: object
    ) -> None:
        super().__init__(body, **options)
        self._on_end = on_end

    def close(self) -> None:
        """Close what Django closes, then tell."""
        super().close()
        if self._on_end:
            on_end, self._on_end = self._on_end, None
            on_end()


def hand_over_stream(
    request: HttpRequest,
    body: AsyncIterator[bytes],
    *,
    content_type: str,
    headers: Mapping[str, str],
    on_end: Callable[[], object] | None = None,
) -> HttpResponseBase:
    """Return the response for a view: headers only, while the server sends `body` afterwards.

    `on_end` is called when the response has ended, also if the client left before it began. Under a
    server without this extension, return Django's own streaming response.
    """
    handover = _find_handover(request)
    if handover is None:
        return _ClosingStream(body, on_end, content_type=content_type, headers=headers)
    handover.accept(body, get_sender(request), on_end)
    return HttpResponse(content_type=content_type, headers=headers)


def call_at_end(request: HttpRequest, on_end: Callable[[], object]) -> None:
    """Have `on_end` called when the response has been sent, or its client has left before.

    It is called on the event loop, and must not block; or in the thread of the view, if the client
    has left already. Under a server without this extension, do nothing.
    """
    handover = _find_handover(request)
    if handover:
        handover.watch(on_end)


def run_for_client(request: HttpRequest, work: Coroutine[object, None, T]) -> T:
    """Run a coroutine from the thread of a view, and cancel it when the client leaves.

    Raises asyncio.CancelledError then. It is no Exception, so no handler logs it or builds an
    answer that nobody receives, and Django takes it as the end of the request.
    """

    async def run_until_client_leaves() -> T:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        call_at_end(request, lambda: loop.call_soon_threadsafe(_cancel_once, task))
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:  # asgiref's, which notices most clients that leave
                _cancel_once(task)
        return task.result()

    return async_to_sync(run_until_client_leaves)()


def _cancel_once(task: asyncio.Task[T]) -> None:
    """Cancel a task; a second cancellation would end what it does about the first."""
    if not task.cancelling():
        task.cancel()


def _find_handover(request: HttpRequest) -> Handover | None:
    extensions = getattr(request, "scope", {}).get("extensions") or {}
    handover: Handover | None = extensions.get(SCOPE_EXTENSION)
    return handover


async def serve_request(
    django_app: Application, scope: Scope, receive: Receive, send: Send
) -> None:
    """Serve a request through Django, and then the stream that its view handed over, if any."""
    handover = Handover()
    response_starts: list[Message] = []

    async def send_or_hold(message: Message) -> None:
        # Django would end the response after its (empty) body. While a stream is waiting, the
        # start is held back and the empty body dropped.
        if handover.body is None:
            await send(message)
        elif message["type"] == "http.response.start":
            response_starts.append(message)

    async def receive_and_watch() -> Message:
        # Django waits for the thread of a view even when the client has left.
        message = await receive()
        if message["type"] == "http.disconnect":
            handover.end()
        return message

    extensions = {**(scope.get("extensions") or {}), SCOPE_EXTENSION: handover}
    try:
        await django_app({**scope, "extensions": extensions}, receive_and_watch, send_or_hold)
        if handover.body is not None:
            await _send_stream(handover, handover.body, response_starts, receive, send)
    finally:
        # When the client has left before the response began, nothing of the body was sent.
        if handover.body is not None:
            await close_body(handover.body)
        handover.end()


async def _send_stream(
    handover: Handover,
    body: AsyncIterator[bytes],
    response_starts: list[Message],
    receive: Receive,
    send: Send,
) -> None:
    """Send the headers that were held back, and the stream after them."""
    for response_start in response_starts:
        headers = [
            (name, value)
            for name, value in response_start["headers"]
            if name.lower() != b"content-length"
        ]
        await send({**response_start, "headers": headers})
        # When the server stops, it cancels this task. The connection breaks, and the client
        # resumes elsewhere; a traceback in the log would tell nobody anything.
        with (
            contextlib.suppress(asyncio.CancelledError),
            sign_out_watch.watch(handover.sender) as sign_out_event,
        ):
            await _send_until_disconnect(body, sign_out_event, receive, send)


async def _send_until_disconnect(
    body: AsyncIterator[bytes], sign_out_event: asyncio.Event, receive: Receive, send: Send
) -> None:
    """Send the body until it ends, the client disconnects, or its sender is signed out.

    Raises what the body raises, so that the connection breaks instead of ending normally.
    """
    send_task = asyncio.ensure_future(_send_body(body, send))
    disconnect_task = asyncio.ensure_future(_wait_for_disconnect(receive))
    sign_out_task = asyncio.ensure_future(sign_out_event.wait())
    tasks = (send_task, disconnect_task, sign_out_task)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if send_task.done():
            send_task.result()
        is_signed_out = sign_out_event.is_set() and not send_task.done()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await close_body(body)
    if is_signed_out:
        # A client that does not read could make this wait for ever.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(send(LAST_MESSAGE), LAST_SECONDS)


async def close_body(body: AsyncIterator[bytes]) -> None:
    """End a stream, wherever it is, and what it holds."""
    if isinstance(body, AsyncGenerator):
        await body.aclose()


async def _send_body(body: AsyncIterator[bytes], send: Send) -> None:
    async for chunk in body:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send(LAST_MESSAGE)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

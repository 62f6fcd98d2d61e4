"""Streams that a view hands over are closed, and calls for a client end, whenever it leaves.

The application beside Django is a stand-in for a moment: a client that leaves just before the view
hands its stream over, or just after it, which no real client can be made to do.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable

import pytest
from asgiref.sync import sync_to_async
from django.http import HttpRequest

from chatcore.api.long_responses import hand_over_stream, run_for_client, serve_request
from chatcore.base.asgi import Application, Message, Receive, Scope, Send

SCOPE: Scope = {"type": "http"}
LEAVES: Message = {"type": "http.disconnect"}


class HeldStream:
    """A stream with something to give back, which has begun."""

    def __init__(self) -> None:
        self.is_closed = False
        self.body = self._iterate()

    async def _iterate(self) -> AsyncGenerator[bytes]:
        try:
            yield b""
            yield b"word"
            await asyncio.Event().wait()
        finally:
            self.is_closed = True


async def receive_leave() -> Message:
    return LEAVES


async def drop(message: Message) -> None:
    """Take a message of the response."""


def build_request(scope: Scope) -> HttpRequest:
    request = HttpRequest()
    request.scope = scope  # type: ignore[attr-defined]
    return request


def call_view(view: Callable[[HttpRequest], object], *, leaves_first: bool) -> Application:
    """Return an application that calls a view in a thread; its client leaves before or after."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if leaves_first:
            await receive()
        await sync_to_async(view)(build_request(scope))
        if not leaves_first:
            await receive()

    return serve


@pytest.mark.parametrize("leaves_first", [True, False])
async def test_a_stream_whose_client_has_left_is_closed(leaves_first: bool) -> None:
    stream, ends = HeldStream(), list[str]()
    await anext(stream.body)

    def hand_over(request: HttpRequest) -> object:
        return hand_over_stream(
            request,
            stream.body,
            content_type="text/plain",
            headers={},
            on_end=lambda: ends.append("end"),
        )

    application = call_view(hand_over, leaves_first=leaves_first)
    await serve_request(application, SCOPE, receive_leave, drop)
    assert stream.is_closed
    assert ends == ["end"]


@pytest.mark.parametrize("leaves_first", [True, False])
async def test_a_call_for_a_client_that_has_left_is_cancelled(leaves_first: bool) -> None:
    has_begun, outcomes = threading.Event(), list[str]()

    async def call() -> None:
        has_begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # a second cancellation would be raised here
            outcomes.append("cleaned up")
            raise

    def wait_for_call(request: HttpRequest) -> None:
        try:
            run_for_client(request, call())
        except asyncio.CancelledError:
            outcomes.append("cancelled")

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if leaves_first:
            await receive()
        view = asyncio.ensure_future(sync_to_async(wait_for_call)(build_request(scope)))
        if not leaves_first:
            await asyncio.to_thread(has_begun.wait)
            await receive()
            view.cancel()  # as Django does
        await asyncio.wait({view})

    await serve_request(serve, SCOPE, receive_leave, drop)
    assert outcomes == ["cleaned up", "cancelled"]

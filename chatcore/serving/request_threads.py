"""Lend each request a thread of its own, and use threads and their connections again.

Django runs the parts of a request in one thread, and asgiref starts a new one for each request.
Django binds a database connection to its thread, so each request would also open a new one.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.core.signals import request_finished, request_started
from django.db import connections
from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

from chatcore.base.asgi import Receive, Scope, Send
from chatcore.base.rest.refusals import is_api_path
from chatcore.serving.heap import trim_heap_soon
from chatcore.serving.path_prefix import restore_path

MAX_IDLE_THREADS = 20
LARGE_BODY_BYTES = 1024 * 1024


class RequestThread(ThreadPoolExecutor):
    """One thread, and what it has been given to do."""

    def __init__(self) -> None:
        super().__init__(max_workers=1, thread_name_prefix="request")
        self._calls: set[Future[object]] = set()

    def submit(
        self, call: Callable[..., object], /, *args: object, **kwargs: object
    ) -> "Future[Any]":
        """Run a call in the thread, after those that were submitted before."""
        future = super().submit(call, *args, **kwargs)
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        return future

    @property
    def is_busy(self) -> bool:
        """Return True while a call runs or waits."""
        return bool(self._calls)

    def end(self) -> None:
        """Let the thread end after what it has to do, and close its database connections.

        Django's connection object is part of a reference cycle, so without this the connection to
        the database would stay open until Python's collector finds it, which it does seldom.
        """
        self.submit(connections.close_all)
        self.shutdown(wait=False)


class RequestThreads:
    """The threads of one event loop that no request has at the moment."""

    def __init__(self) -> None:
        self._idle_threads: list[RequestThread] = []

    @contextlib.asynccontextmanager
    async def lend_thread(self) -> AsyncIterator[None]:
        """Have the synchronous parts of the current task run in a thread of its own."""
        thread = self._idle_threads.pop() if self._idle_threads else RequestThread()
        try:
            async with ThreadSensitiveContext(executor=thread):
                yield
        finally:
            # The client of a long request may have left, and Python cannot stop the thread. Nobody
            # else may wait behind it, so it ends by itself.
            if thread.is_busy or len(self._idle_threads) >= MAX_IDLE_THREADS:
                thread.end()
            else:
                self._idle_threads.append(thread)


request_threads = RequestThreads()


# A request of an API passes through none of these, which do nothing for it.
PAGE_MIDDLEWARE = frozenset(
    {
        "whitenoise.middleware.WhiteNoiseMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django_htmx.middleware.HtmxMiddleware",
        "chatcore.accounts.sign_on.SignOn",
        "chatcore.accounts.devices.Devices",
        "axes.middleware.AxesMiddleware",
    }
)


class ApiHandler(BaseHandler):
    """Django's handler without the middleware that is for pages alone."""

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the rest of the middleware."""
        paths = settings.MIDDLEWARE  # Django reads it from there, once for each handler
        settings.MIDDLEWARE = [path for path in paths if path not in PAGE_MIDDLEWARE]
        try:
            super().load_middleware(is_async=False)
        finally:
            settings.MIDDLEWARE = paths


class OneThreadHandler(ASGIHandler):
    """Django's handler, with all of a request in one thread: no view of ours is asynchronous.

    Django returns to the event loop between middleware and view, which takes 7 ms of a request.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the middleware as it is for a thread."""
        super().load_middleware(is_async=False)
        self._api_handler = ApiHandler()
        self._api_handler.load_middleware()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as Django's method does, with one change of threads instead of three.

        Django sends the signals around a request from the event loop, each through a thread.
        """
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        set_script_prefix(get_script_prefix(scope))
        request, refusal = self.create_request(scope, body)
        if request is None:
            assert refusal
            body.close()
            await self.send_response(refusal, send)
            return
        disconnect_task = asyncio.create_task(self.listen_for_disconnect(receive))
        answer_task = asyncio.create_task(self._answer(request, send))
        tasks = (disconnect_task, answer_task)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        with contextlib.suppress(RequestAborted, asyncio.CancelledError):
            await disconnect_task
        with contextlib.suppress(asyncio.CancelledError):
            await answer_task

    async def _answer(self, request: ASGIRequest, send: Send) -> None:
        response = await sync_to_async(self._make_response)(request)
        try:
            await self.send_response(response, send)
        finally:
            if response.streaming:
                await sync_to_async(response.close)()

    def _make_response(self, request: ASGIRequest) -> HttpResponseBase:
        """Return the response, closed if nothing of it is made while it is sent.

        The thread closes the request too: it goes on with it when the client has left.
        """
        request_started.send(sender=type(self), scope=request.scope)
        handler = self._api_handler if is_api_path(request.path_info) else self
        try:
            response = handler.get_response(request)
        except asyncio.CancelledError:  # the client disconnected
            request.close()
            request_finished.send(sender=type(self))
            raise
        response._handler_class = type(self)  # type: ignore[attr-defined]  # noqa: SLF001
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        release_request(response)
        if max(read_size(request.headers), read_size(response.headers)) >= LARGE_BODY_BYTES:
            end_connections()
        if not response.streaming:
            response.close()
        return response


def read_size(headers: Mapping[str, str]) -> int:
    """Return the size of a body as its headers state it, in bytes; 0 if they do not."""
    return int(headers.get("Content-Length") or 0)


def end_connections() -> None:
    """End the connections to PostgreSQL of this thread, which a pool would keep.

    A connection keeps the memory of its largest statement and its largest row: files of 5 MB left
    130 MB in a process.
    """
    for connection in connections.all(initialized_only=True):
        if connection.vendor == "postgresql" and connection.connection is not None:
            connection.connection.close()
            connection.close()  # the pool opens another one in its place


def release_request(response: HttpResponseBase) -> None:
    """Let go of the request of Django REST framework, now that its response is rendered.

    Request, response and view refer to themselves, so a file of 5 MB, or a body that was parsed,
    would be kept until Python's collector comes: after dozens of requests.
    """
    context = getattr(response, "renderer_context", None) or {}
    if "request" in context:
        context["request"].parser_context.clear()
        vars(context["view"]).clear()
    context.clear()


django_application = OneThreadHandler()


async def run_django(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request by Django, in a thread of its own."""
    async with request_threads.lend_thread():
        await django_application(restore_path(scope), receive, send)
    if int(dict(scope["headers"]).get(b"content-length", 0)) >= LARGE_BODY_BYTES:
        trim_heap_soon()

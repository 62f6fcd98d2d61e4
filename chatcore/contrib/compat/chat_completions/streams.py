"""Stream an answer: from the parts of a provider or a turn to the bytes of a response."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import ExitStack, aclosing, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar
from uuid import UUID

from django.db import close_old_connections
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from chatcore.api import event_streams
from chatcore.api.long_responses import Handover, hand_over_stream, run_for_client
from chatcore.base.rest.auth import SignedInRequest
from chatcore.base.threads import PREPARATION, run_in_thread
from chatcore.contrib.compat.chat_completions import errors
from chatcore.events import log as event_log
from chatcore.models import Session, Turn
from chatcore.providers.base import ReasoningDelta, StreamEnd, StreamPart, TextDelta
from chatcore.turns import control

Part = TypeVar("Part")
STOP_SECONDS = 10.0  # to wait for the end of an answer that is being stopped

_stopping_turn_ids: set[UUID] = set()
_stop_tasks: set[asyncio.Task[bool]] = set()  # the event loop holds no reference to its tasks

HEARTBEAT_COMMENT = b": waiting\n\n"  # clients ignore comments
DONE_EVENT = b"data: [DONE]\n\n"


@dataclass(frozen=True, kw_only=True)
class BegunStream:
    """A stream whose answer has begun; `on_end` is called at its end, or when its client leaves."""

    chunks: AsyncGenerator[bytes]
    build_headers: Callable[[], Mapping[str, str]]
    on_end: Callable[[], object] = lambda: None


class ClientWatch:
    """Knows whether the client got the whole answer of a turn, and stops the answer if not.

    To close the connection is the only way in which OpenAI's clients stop an answer. Turns of the
    REST API go on without their clients. As a context manager it surrounds what is done for the
    client: its end and its failure are the end of the answer.
    """

    def __init__(self, turn: Turn) -> None:
        self.turn_id = turn.pk
        self._is_over = False

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        has_left = isinstance(error, (GeneratorExit, asyncio.CancelledError))
        self._is_over = not has_left

    def stop_unless_over(self) -> None:
        """Stop the answer if the client has not got all of it. Does not block an event loop."""
        if self._is_over:
            return
        _stopping_turn_ids.add(self.turn_id)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # this is the thread of a view
            _stop_answer(self.turn_id)
            return
        task = loop.create_task(run_in_thread(_stop_answer, self.turn_id))
        _stop_tasks.add(task)
        task.add_done_callback(_stop_tasks.discard)

    async def watch_parts(self, parts: AsyncGenerator[Part]) -> AsyncGenerator[Part]:
        """Yield the parts for the client."""
        with self:
            async with aclosing(parts):
                async for part in parts:
                    yield part


def wait_for_stopped_answer(session: Session) -> None:
    """Wait until an answer of the session whose client has left has ended, so that it can go on.

    Returns after STOP_SECONDS even if it has not.
    """
    running_turns = session.turns.filter(status=Turn.Status.RUNNING)
    for turn_id, is_stopping in running_turns.values_list("pk", "cancel_requested"):
        if is_stopping or turn_id in _stopping_turn_ids:
            with suppress(TimeoutError, Turn.DoesNotExist):
                control.wait_for_turn(turn_id, timeout=STOP_SECONDS)


def _stop_answer(turn_id: UUID) -> bool:
    try:
        return control.stop_answer(turn_id)
    finally:
        _stopping_turn_ids.discard(turn_id)


def format_event(data: Mapping[str, object]) -> bytes:
    """Return an event of a stream: one `data` line of JSON."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return b"data: " + text.encode() + b"\n\n"


def format_failure(error: Exception) -> bytes:
    """Return the event that ends a stream with an error."""
    _, body = errors.format_error(errors.describe_failure(error))
    return format_event(body)


def hand_over(
    request: Request,
    stream: AsyncGenerator[bytes],
    build_headers: Callable[[], Mapping[str, str]],
    *,
    on_end: Callable[[], object] = lambda: None,
    format_failure: Callable[[Exception], bytes] = format_failure,
) -> HttpResponseBase:
    """Return an answer as a stream; `on_end` is called at its end, or when its client leaves.

    This waits for the first event, and holds a thread until then, so that an error before it can
    be the status of the response, and the headers can say what was sent. A later error becomes the
    last event.
    """
    close_old_connections()  # the stream opens connections for its own reads
    body = _start_stream(stream, format_failure)
    with ExitStack() as at_failure:
        at_failure.callback(on_end)
        run_for_client(request, _await_start(body))
        at_failure.pop_all()
    return hand_over_stream(
        request,
        body,
        content_type=event_streams.MEDIA_TYPE,
        headers=event_streams.HEADERS | dict(build_headers()),
        on_end=on_end,
    )


def hand_over_late(
    request: SignedInRequest,
    begin: Callable[[], BegunStream],
    *,
    format_failure: Callable[[Exception], bytes] = format_failure,
) -> HttpResponseBase:
    """Return the stream that `begin` returns, which may wait for a model before.

    It runs in a thread, and the client gets comments meanwhile. If it raises within
    HEARTBEAT_SECONDS, the error is the status of the response. If the client leaves before it has
    returned, the end of its stream is called then.
    """
    late_end = Handover()
    build_headers: list[Callable[[], Mapping[str, str]]] = []

    def begin_and_watch() -> AsyncGenerator[bytes]:
        begun_stream = begin()
        late_end.watch(begun_stream.on_end)
        build_headers.append(begun_stream.build_headers)
        return begun_stream.chunks

    return hand_over(
        request,
        _wait_for_stream(lambda: PREPARATION.run_for(request.user.pk, begin_and_watch)),
        lambda: build_headers[0]() if build_headers else {},
        on_end=late_end.end,
        format_failure=format_failure,
    )


async def _wait_for_stream(
    begin: Callable[[], Coroutine[object, None, AsyncGenerator[bytes]]],
) -> AsyncGenerator[bytes]:
    """Yield comments until the stream has begun, and then the stream."""
    task = asyncio.ensure_future(begin())
    try:
        while not (await asyncio.wait({task}, timeout=event_log.HEARTBEAT_SECONDS))[0]:
            yield HEARTBEAT_COMMENT
    finally:
        task.cancel()  # does nothing to one that is done
    async with aclosing(task.result()) as chunks:
        async for chunk in chunks:
            yield chunk


async def _start_stream(
    stream: AsyncGenerator[bytes], format_failure: Callable[[Exception], bytes]
) -> AsyncGenerator[bytes]:
    """Yield an empty chunk when the first one has come, and then the stream.

    After the empty chunk this generator has begun, so closing it closes the stream: one that has
    not begun would end without entering the block that closes. Raises the error that comes in
    place of the first chunk; a later one becomes the last event.
    """
    async with aclosing(stream):
        first_chunk = await anext(stream, DONE_EVENT)
        yield b""
        try:
            yield first_chunk
            async for chunk in stream:
                yield chunk
        except Exception as error:  # noqa: BLE001 - logged where it becomes an event
            yield format_failure(error)


async def _await_start(body: AsyncGenerator[bytes]) -> None:
    await anext(body)


async def collect_parts(parts: AsyncIterator[StreamPart]) -> tuple[str, str, StreamEnd]:
    """Return text, reasoning and final part of an answer."""
    texts: list[str] = []
    reasoning_texts: list[str] = []
    final_part = StreamEnd(reason="stop")
    async for part in parts:
        if isinstance(part, TextDelta):
            texts.append(part.text)
        elif isinstance(part, ReasoningDelta):
            reasoning_texts.append(part.text)
        else:
            final_part = part
    return "".join(texts), "".join(reasoning_texts), final_part


async def add_heartbeats(parts: AsyncGenerator[Part]) -> AsyncGenerator[Part | None]:
    """Yield the parts of an answer, and None after each HEARTBEAT_SECONDS without one.

    The parts are what the client is sent, so the clock is the client's: the events of a session by
    which the progress of a compaction or of a model that reads is reported do not move it. Closing
    this generator closes `parts`.
    """
    next_part: asyncio.Task[Part | None] | None = None
    try:
        while True:
            # The task outlives a heartbeat: `asyncio.timeout` would cancel the provider's stream.
            if next_part is None:
                next_part = asyncio.ensure_future(_get_next_part(parts))
            finished_tasks, _ = await asyncio.wait({next_part}, timeout=event_log.HEARTBEAT_SECONDS)
            if not finished_tasks:
                yield None
                continue
            part = next_part.result()
            next_part = None
            if part is None:
                return
            yield part
    finally:
        # A generator that is running cannot be closed, so its task must end first.
        if next_part:
            next_part.cancel()
            await asyncio.wait({next_part})
        await parts.aclose()


async def _get_next_part(parts: AsyncGenerator[Part]) -> Part | None:
    return await anext(parts, None)

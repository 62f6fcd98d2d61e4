"""Stream an answer: from the parts of a provider or a turn to the bytes of a response."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing

from asgiref.sync import async_to_sync
from django.db import close_old_connections
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from chatcore.api import event_streams
from chatcore.api.long_responses import hand_over_stream
from chatcore.providers.base import ReasoningDelta, StreamEnd, StreamPart, TextDelta

HEARTBEAT_COMMENT = b": waiting\n\n"  # clients ignore comments
DONE_EVENT = b"data: [DONE]\n\n"


def hand_over(
    request: Request,
    stream: AsyncGenerator[bytes],
    build_headers: Callable[[], Mapping[str, str]],
    on_end: Callable[[], object] | None = None,
) -> HttpResponseBase:
    """Return an answer as a stream; `on_end` is called at its end, or when its client leaves.

    This waits for the first event, and holds a thread until then, so that an error before it can
    be the status of the response, and the headers can say what was sent.
    """
    close_old_connections()  # the stream opens connections for its own reads
    try:
        body = async_to_sync(_await_first_chunk)(stream)
    except BaseException:
        if on_end:
            on_end()
        raise
    return hand_over_stream(
        request,
        body,
        content_type=event_streams.MEDIA_TYPE,
        headers=event_streams.HEADERS | dict(build_headers()),
        on_end=on_end,
    )


async def _await_first_chunk(stream: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Return the stream after its first chunk has come. Raises the error that comes instead."""
    first_chunk = await anext(stream, DONE_EVENT)

    async def iterate_chunks() -> AsyncGenerator[bytes]:
        async with aclosing(stream):
            yield first_chunk
            async for chunk in stream:
                yield chunk

    return iterate_chunks()


async def collect_parts(parts: AsyncIterator[StreamPart | None]) -> tuple[str, str, StreamEnd]:
    """Return text, reasoning and final part of an answer."""
    texts: list[str] = []
    reasoning_texts: list[str] = []
    final_part = StreamEnd(reason="stop")
    async for part in parts:
        if isinstance(part, TextDelta):
            texts.append(part.text)
        elif isinstance(part, ReasoningDelta):
            reasoning_texts.append(part.text)
        elif part is not None:
            final_part = part
    return "".join(texts), "".join(reasoning_texts), final_part


async def add_heartbeats(
    parts: AsyncGenerator[StreamPart], seconds: float
) -> AsyncGenerator[StreamPart | None]:
    """Yield the parts, and None after each `seconds` without one.

    Closing this generator closes `parts`.
    """
    next_part: asyncio.Task[StreamPart | None] | None = None
    try:
        while True:
            # The task outlives a heartbeat: `asyncio.timeout` would cancel the provider's stream.
            if next_part is None:
                next_part = asyncio.ensure_future(_get_next_part(parts))
            finished_tasks, _ = await asyncio.wait({next_part}, timeout=seconds)
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


async def _get_next_part(parts: AsyncGenerator[StreamPart]) -> StreamPart | None:
    return await anext(parts, None)

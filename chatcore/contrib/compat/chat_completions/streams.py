"""Stream an answer: from the parts of a provider or a turn to the bytes of a response."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from chatcore.providers.base import ReasoningDelta, StreamEnd, StreamPart, TextDelta

HEARTBEAT_COMMENT = b": waiting\n\n"  # clients ignore comments
DONE_EVENT = b"data: [DONE]\n\n"


async def await_first_chunk(stream: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
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

"""Stream an answer: from the parts of a provider or a turn to the bytes of a response."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from chatcore.contrib.compat.chat_completions import errors
from chatcore.contrib.compat.chat_completions.completion_format import (
    CompletionEnvelope,
    format_choice,
    format_event,
    format_usage,
    iterate_choices,
)
from chatcore.providers.base import ReasoningDelta, StreamEnd, StreamPart, TextDelta

logger = logging.getLogger(__name__)

HEARTBEAT_COMMENT = b": waiting\n\n"  # clients ignore comments
DONE_EVENT = b"data: [DONE]\n\n"


async def stream_chunks(
    parts: AsyncGenerator[StreamPart | None], envelope: CompletionEnvelope, *, include_usage: bool
) -> AsyncGenerator[bytes]:
    """Yield a completion in chunks; a part that is None becomes a heartbeat.

    Closing this generator closes `parts`. An error before the first chunk is raised, so that it
    can be the status of the response. After it the status is sent, and the error becomes an event,
    at which clients raise.
    """
    has_started = False
    has_role = False
    # With `include_usage`, OpenAI sends null in every chunk but the last.
    usage_members: dict[str, Any] = {"usage": None} if include_usage else {}
    try:
        async with aclosing(parts):
            async for part in parts:
                if part is None:
                    yield HEARTBEAT_COMMENT
                    has_started = True
                    continue
                if not has_role:
                    first_delta = {"role": "assistant", "content": "", "refusal": None}
                    yield envelope.format_chunk(format_choice(first_delta), **usage_members)
                    has_role = has_started = True
                for choice in iterate_choices(part):
                    yield envelope.format_chunk(choice, **usage_members)
                if include_usage and isinstance(part, StreamEnd):
                    yield envelope.format_chunk(usage=format_usage(part.usage))
    except Exception as error:
        if not has_started:
            raise
        yield format_failure(error)
        return
    yield DONE_EVENT


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


def format_failure(error: Exception) -> bytes:
    """Return the event that ends a stream with an error."""
    _, body = errors.format_error(errors.describe_failure(error))
    return format_event(body)

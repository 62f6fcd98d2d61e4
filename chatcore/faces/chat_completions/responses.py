"""Answers as OpenAI words them: a whole completion, or its chunks as the parts of an answer come."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from chatcore.faces.chat_completions import errors
from chatcore.providers.base import (
    ReasoningDelta,
    StreamEnd,
    StreamPart,
    TextDelta,
    ToolCall,
    Usage,
)
from chatcore.rest.problems import Problem

logger = logging.getLogger(__name__)

HEARTBEAT_COMMENT = b": waiting\n\n"  # a comment, which clients pass over
DONE_EVENT = b"data: [DONE]\n\n"
_FINISH_REASONS = {"refusal": "content_filter"}


@dataclass(frozen=True, kw_only=True)
class CompletionEnvelope:
    """What every piece of one completion carries."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def format_chunk(self, *choices: dict[str, Any], **members: Any) -> bytes:
        """One event of a stream."""
        head = {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
        }
        return _format_event(head | {"choices": choices} | members)

    def format_completion(self, text: str, reasoning: str, final_part: StreamEnd) -> dict[str, Any]:
        """The completion."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": text if text or not final_part.tool_calls else None,
            "refusal": None,
        }
        if reasoning:
            message["reasoning_content"] = reasoning
        if final_part.tool_calls:
            message["tool_calls"] = [_format_call(call) for call in final_part.tool_calls]
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _get_finish_reason(final_part),
        }
        head = {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
        }
        return head | {"choices": [choice], "usage": format_usage(final_part.usage)}


async def stream_chunks(
    parts: AsyncGenerator[StreamPart | None], envelope: CompletionEnvelope, *, include_usage: bool
) -> AsyncGenerator[bytes]:
    """The stream of a completion; a part that is None is a heartbeat. Closing it closes the parts.

    A failure before the first word is raised, so that it can be the response's status; one after it is an event, at which clients raise.
    """
    has_started = has_role = False
    usage_placeholder = {"usage": None} if include_usage else {}
    try:
        async with aclosing(parts):
            async for part in parts:
                if part is not None and not has_role:
                    yield envelope.format_chunk(
                        _format_choice({"role": "assistant", "content": "", "refusal": None}),
                        **usage_placeholder,
                    )
                    has_role = True
                for delta, finish_reason in _format_deltas(part):
                    yield envelope.format_chunk(
                        _format_choice(delta, finish_reason), **usage_placeholder
                    )
                if part is None:
                    yield HEARTBEAT_COMMENT
                elif include_usage and isinstance(part, StreamEnd):
                    yield envelope.format_chunk(usage=format_usage(part.usage))
                has_started = True
    except Exception as error:
        if not (has_started or has_role):
            raise
        yield _format_failure(error)
        return
    yield DONE_EVENT


async def await_first_chunk(stream: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The stream, its first piece waited for: what goes wrong before that is raised here."""
    first_chunk = await anext(stream, DONE_EVENT)

    async def iterate_chunks() -> AsyncGenerator[bytes]:
        async with aclosing(stream):
            yield first_chunk
            async for chunk in stream:
                yield chunk

    return iterate_chunks()


async def collect_parts(parts: AsyncIterator[StreamPart | None]) -> tuple[str, str, StreamEnd]:
    """Text, reasoning and end of an answer."""
    texts, reasoning_texts, final_part = [], [], StreamEnd(reason="stop")
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
    """The parts, and None whenever none has come for so long. Closing it closes them."""
    pending_task: asyncio.Task[StreamPart | None] | None = None
    try:
        while True:
            pending_task = pending_task or asyncio.ensure_future(_get_next_part(parts))
            if not (await asyncio.wait({pending_task}, timeout=seconds))[0]:
                yield None
                continue
            part, pending_task = pending_task.result(), None
            if part is None:
                return
            yield part
    finally:
        if pending_task:
            pending_task.cancel()
            await asyncio.wait({pending_task})
        await parts.aclose()


def format_usage(provider_usage: Usage | None) -> dict[str, Any]:
    """Tokens as OpenAI names them; zeros where nobody counted."""
    token_usage = provider_usage or Usage(input=0, output=0)
    body: dict[str, Any] = {
        "prompt_tokens": token_usage.input,
        "completion_tokens": token_usage.output,
        "total_tokens": token_usage.input + token_usage.output,
    }
    return body | (
        {"prompt_tokens_details": {"cached_tokens": token_usage.cache_read}}
        if token_usage.cache_read is not None
        else {}
    )


async def _get_next_part(parts: AsyncGenerator[StreamPart]) -> StreamPart | None:
    return await anext(parts, None)


def _format_failure(error: Exception) -> bytes:
    problem = errors.to_problem(error)
    if problem is None:
        logger.error("a stream of the OpenAI face broke", exc_info=error)
        problem = Problem(500, "internal_error", "Something went wrong on our side.")
    return _format_event(errors.format_stream_error(problem))


def _format_deltas(part: StreamPart | None) -> Iterator[tuple[dict[str, Any], str | None]]:
    """What a part adds to the message, and the reason with which it ends."""
    if isinstance(part, StreamEnd):
        for index, call in enumerate(part.tool_calls):
            yield from (
                ({"tool_calls": [delta]}, None) for delta in _format_call_deltas(index, call)
            )
        yield {}, _get_finish_reason(part)
    elif part is not None:
        yield {"content" if isinstance(part, TextDelta) else "reasoning_content": part.text}, None


def _format_call_deltas(index: int, call: ToolCall) -> Sequence[dict[str, Any]]:
    """First its name, then its arguments, as clients are used to."""
    first_delta = _format_call(call) | {
        "index": index,
        "function": {"name": call.name, "arguments": ""},
    }
    return [first_delta, {"index": index, "function": {"arguments": call.arguments}}]


def _format_call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _format_choice(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _get_finish_reason(final_part: StreamEnd) -> str:
    return _FINISH_REASONS.get(final_part.reason, final_part.reason)


def _format_event(data: dict[str, Any]) -> bytes:
    return (
        b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
    )

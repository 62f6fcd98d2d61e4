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
from chatcore.providers.base import Finished, Part, ReasoningDelta, TextDelta, ToolCall, Usage
from chatcore.rest.problems import Problem

logger = logging.getLogger(__name__)

HEARTBEAT = b": waiting\n\n"  # a comment, which clients pass over
DONE = b"data: [DONE]\n\n"
_FINISH = {"refusal": "content_filter"}


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What every piece of one completion carries."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def chunk(self, *choices: dict[str, Any], **other: Any) -> bytes:
        """One event of a stream."""
        head = {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
        }
        return _event(head | {"choices": choices} | other)

    def whole(self, text: str, reasoning: str, finished: Finished) -> dict[str, Any]:
        """The completion."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": text if text or not finished.tool_calls else None,
            "refusal": None,
        }
        if reasoning:
            message["reasoning_content"] = reasoning
        if finished.tool_calls:
            message["tool_calls"] = [_call(call) for call in finished.tool_calls]
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _finish(finished),
        }
        head = {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
        }
        return head | {"choices": [choice], "usage": usage(finished.usage)}


async def chunks(
    parts: AsyncGenerator[Part | None], frame: Frame, *, include_usage: bool
) -> AsyncGenerator[bytes]:
    """The stream of a completion; a part that is None is a heartbeat. Closing it closes the parts.

    A failure before the first word is raised, so that it can be the response's status; one after it is an event, at which clients raise.
    """
    begun = spoken = False
    uncounted = {"usage": None} if include_usage else {}
    try:
        async with aclosing(parts):
            async for part in parts:
                if part is not None and not spoken:
                    yield frame.chunk(
                        _choice({"role": "assistant", "content": "", "refusal": None}), **uncounted
                    )
                    spoken = True
                for delta, finish in _deltas(part):
                    yield frame.chunk(_choice(delta, finish), **uncounted)
                if part is None:
                    yield HEARTBEAT
                elif include_usage and isinstance(part, Finished):
                    yield frame.chunk(usage=usage(part.usage))
                begun = True
    except Exception as error:
        if not (begun or spoken):
            raise
        yield _failure(error)
        return
    yield DONE


async def begun(stream: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The stream, its first piece waited for: what goes wrong before that is raised here."""
    first = await anext(stream, DONE)

    async def all_of_it() -> AsyncGenerator[bytes]:
        async with aclosing(stream):
            yield first
            async for piece in stream:
                yield piece

    return all_of_it()


async def gathered(parts: AsyncIterator[Part | None]) -> tuple[str, str, Finished]:
    """Text, reasoning and end of an answer."""
    text, reasoning, finished = [], [], Finished(reason="stop")
    async for part in parts:
        if isinstance(part, TextDelta):
            text.append(part.text)
        elif isinstance(part, ReasoningDelta):
            reasoning.append(part.text)
        elif part is not None:
            finished = part
    return "".join(text), "".join(reasoning), finished


async def with_heartbeats(
    parts: AsyncGenerator[Part], seconds: float
) -> AsyncGenerator[Part | None]:
    """The parts, and None whenever none has come for so long. Closing it closes them."""
    waiting: asyncio.Task[Part | None] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(_next(parts))
            if not (await asyncio.wait({waiting}, timeout=seconds))[0]:
                yield None
                continue
            part, waiting = waiting.result(), None
            if part is None:
                return
            yield part
    finally:
        if waiting:
            waiting.cancel()
            await asyncio.wait({waiting})
        await parts.aclose()


def usage(counted: Usage | None) -> dict[str, Any]:
    """Tokens as OpenAI names them; zeros where nobody counted."""
    told = counted or Usage(input=0, output=0)
    shown: dict[str, Any] = {
        "prompt_tokens": told.input,
        "completion_tokens": told.output,
        "total_tokens": told.input + told.output,
    }
    return shown | (
        {"prompt_tokens_details": {"cached_tokens": told.cache_read}}
        if told.cache_read is not None
        else {}
    )


async def _next(parts: AsyncGenerator[Part]) -> Part | None:
    return await anext(parts, None)


def _failure(error: Exception) -> bytes:
    problem = errors.raised(error)
    if problem is None:
        logger.error("a stream of the OpenAI face broke", exc_info=error)
        problem = Problem(500, "internal_error", "Something went wrong on our side.")
    return _event(errors.told_midway(problem))


def _deltas(part: Part | None) -> Iterator[tuple[dict[str, Any], str | None]]:
    """What a part adds to the message, and the reason with which it ends."""
    if isinstance(part, Finished):
        for index, call in enumerate(part.tool_calls):
            yield from (({"tool_calls": [delta]}, None) for delta in _call_deltas(index, call))
        yield {}, _finish(part)
    elif part is not None:
        yield {"content" if isinstance(part, TextDelta) else "reasoning_content": part.text}, None


def _call_deltas(index: int, call: ToolCall) -> Sequence[dict[str, Any]]:
    """First its name, then its arguments, as clients are used to."""
    opened = _call(call) | {"index": index, "function": {"name": call.name, "arguments": ""}}
    return [opened, {"index": index, "function": {"arguments": call.arguments}}]


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _finish(finished: Finished) -> str:
    return _FINISH.get(finished.reason, finished.reason)


def _event(data: dict[str, Any]) -> bytes:
    return (
        b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
    )

"""The wire formats of the scripted model: bodies and stream events of both protocols."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from chatcore.providers.base import ToolCall

ANTHROPIC_STOP = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
OPENAI_FINISH = {"refusal": "content_filter"}
UNCOUNTED_FIELDS = {"data", "url", "signature"}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The scripted model's answer to one request, streamed or not, in either protocol."""

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    reasoning: str = ""
    # (input with caches, output[, cache_read[, cache_write]]); None: a quarter of the characters
    usage: tuple[int, ...] | Literal[False] | None = None
    finish: str | None = "stop"  # None: the stream ends cleanly without any finish reason
    status: int = 200  # from 400 on an error body whose message is `text`
    body: bytes | None = None  # sent as it is
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0  # seconds before the first byte
    chunk_delay: float = 0.0  # seconds between content chunks
    chunks: Sequence[str] | None = None  # the pieces of the text
    # llama.cpp's (cached, processed, total) while it reads, sent before the text if asked for, with
    # `chunk_delay` between them
    reading: Sequence[tuple[int, int, int]] = ()
    cut_after: int | None = None  # drop the connection after that many content chunks
    hang: bool = False  # never answer; with cut_after: stop sending there instead of dropping
    # Split the byte stream into writes of this size, in the middle of characters and events.
    bytes_per_write: int | None = None

    @property
    def words(self) -> str:
        return self.text if self.chunks is None else "".join(self.chunks)

    @property
    def reason(self) -> str | None:
        return "tool_calls" if self.tool_calls and self.finish == "stop" else self.finish


@dataclass(frozen=True)
class Event:
    """One server-sent event; `content` marks those that `cut_after` counts."""

    data: dict[str, Any] | str
    name: str = ""
    content: bool = False

    def encode(self) -> bytes:
        data = (
            self.data if isinstance(self.data, str) else json.dumps(self.data, ensure_ascii=False)
        )
        return (
            f"event: {self.name}\n" if self.name else ""
        ).encode() + f"data: {data}\n\n".encode()


def split_pieces(text: str, count: int = 20) -> list[str]:
    """Split a text into at most `count` pieces of at least four characters."""
    size = max(4, math.ceil(len(text) / count))
    return [text[i : i + size] for i in range(0, len(text), size)]


def split_reply(reply: Reply) -> Sequence[str]:
    return split_pieces(reply.text) if reply.chunks is None else reply.chunks


def count_usage(reply: Reply, request: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return input (caches included), output, cache read and cache write tokens of a call."""
    if reply.usage:
        usage = (*reply.usage, 0, 0)
        return usage[0], usage[1], usage[2], usage[3]
    input_characters = sum(
        _count_characters(request.get(key)) for key in ("system", "messages", "tools")
    )
    output_characters = (
        len(reply.words)
        + len(reply.reasoning)
        + sum(len(call.name) + len(call.arguments) for call in reply.tool_calls)
    )
    return max(1, input_characters // 4), max(1, output_characters // 4), 0, 0


def _count_characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(_count_characters(v) for k, v in value.items() if k not in UNCOUNTED_FIELDS)
    return sum(map(_count_characters, value)) if isinstance(value, list) else 0


def build_openai_usage(reply: Reply, request: dict[str, Any]) -> dict[str, Any] | None:
    if reply.usage is False:
        return None
    input_tokens, output_tokens, cache_read, _ = count_usage(reply, request)
    usage: dict[str, Any] = {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }
    return usage | {"prompt_tokens_details": {"cached_tokens": cache_read}} if cache_read else usage


def build_openai_completion(reply: Reply, request: dict[str, Any]) -> dict[str, Any]:
    """Build the body of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.words or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [_build_openai_call(call) for call in reply.tool_calls]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": OPENAI_FINISH.get(reply.reason or "", reply.reason),
    }
    return _build_openai_frame(request, "chat.completion") | {
        "choices": [choice],
        "usage": build_openai_usage(reply, request),
    }


def build_openai_events(reply: Reply, request: dict[str, Any]) -> Iterator[Event]:
    """Yield the chunks of a streamed chat completion.

    The arguments of parallel calls are interleaved, as the protocol allows.
    """
    frame = _build_openai_frame(request, "chat.completion.chunk")

    def build_chunk(
        delta: dict[str, Any], finish: str | None = None, content: bool = False
    ) -> Event:
        return Event(
            frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]},
            content=content,
        )

    for cached, processed, total in reply.reading if request.get("return_progress") else ():
        progress = {"cache": cached, "processed": processed, "total": total, "time_ms": 1}
        choice = {"index": 0, "delta": {"role": "assistant", "content": None}}
        yield Event(frame | {"choices": [choice], "prompt_progress": progress}, content=True)
    yield build_chunk({"role": "assistant", "content": ""})
    yield from (
        build_chunk({"reasoning_content": piece}, content=True)
        for piece in split_pieces(reply.reasoning)
    )
    yield from (build_chunk({"content": piece}, content=True) for piece in split_reply(reply))
    yield from (
        build_chunk({"tool_calls": [delta]}, content=True)
        for delta in _split_openai_calls(reply.tool_calls)
    )
    if reply.finish is None:
        return
    yield build_chunk({}, OPENAI_FINISH.get(reply.reason or "", reply.reason))
    usage = build_openai_usage(reply, request)
    if usage and (request.get("stream_options") or {}).get("include_usage"):
        yield Event(frame | {"choices": [], "usage": usage})
    yield Event("[DONE]")


def _build_openai_frame(request: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-scripted",
        "object": kind,
        "created": 1,
        "model": request.get("model", ""),
    }


def _build_openai_call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _split_openai_calls(calls: Sequence[ToolCall]) -> Iterator[dict[str, Any]]:
    for index, call in enumerate(calls):
        yield {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
    fragments = [split_pieces(call.arguments, 4) for call in calls]
    for step in range(max(map(len, fragments), default=0)):
        for index, fragment in enumerate(fragments):
            if step < len(fragment):
                yield {"index": index, "function": {"arguments": fragment[step]}}


def build_anthropic_usage(reply: Reply, request: dict[str, Any]) -> dict[str, Any]:
    if reply.usage is False:
        return {}
    input_tokens, output_tokens, cache_read, cache_write = count_usage(reply, request)
    usage = {
        "input_tokens": input_tokens - cache_read - cache_write,
        "output_tokens": output_tokens,
    }
    return usage | (
        {"cache_read_input_tokens": cache_read, "cache_creation_input_tokens": cache_write}
        if cache_read or cache_write
        else {}
    )


def build_anthropic_message(reply: Reply, request: dict[str, Any]) -> dict[str, Any]:
    """Build the body of a message."""
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": "signed"})
    if reply.words:
        blocks.append({"type": "text", "text": reply.words})
    blocks += [_build_anthropic_call(call) for call in reply.tool_calls]
    reason = ANTHROPIC_STOP.get(reply.reason or "", reply.reason)
    return _build_anthropic_frame(request) | {
        "content": blocks,
        "stop_reason": reason,
        "usage": build_anthropic_usage(reply, request),
    }


def build_anthropic_events(reply: Reply, request: dict[str, Any]) -> Iterator[Event]:
    """Yield the events of a streamed message, from message_start to message_stop."""
    usage = build_anthropic_usage(reply, request)
    opening = usage | {"output_tokens": 1} if usage else usage
    yield _name_event(
        {
            "type": "message_start",
            "message": _build_anthropic_frame(request) | {"content": [], "usage": opening},
        }
    )
    yield _name_event({"type": "ping"})
    for index, (block, deltas) in enumerate(_list_anthropic_blocks(reply)):
        yield _name_event({"type": "content_block_start", "index": index, "content_block": block})
        for delta in deltas:
            is_content = delta["type"] != "signature_delta"
            yield _name_event(
                {"type": "content_block_delta", "index": index, "delta": delta}, content=is_content
            )
        yield _name_event({"type": "content_block_stop", "index": index})
    if reply.finish is None:
        return
    reason = ANTHROPIC_STOP.get(reply.reason or "", reply.reason)
    output = {"output_tokens": usage["output_tokens"]} if usage else {}
    yield _name_event(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": output,
        }
    )
    yield _name_event({"type": "message_stop"})


def _list_anthropic_blocks(reply: Reply) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if reply.reasoning:
        thoughts = [
            {"type": "thinking_delta", "thinking": piece} for piece in split_pieces(reply.reasoning)
        ]
        yield (
            {"type": "thinking", "thinking": "", "signature": ""},
            [*thoughts, {"type": "signature_delta", "signature": "signed"}],
        )
    if reply.words:
        yield (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": piece} for piece in split_reply(reply)],
        )
    for call in reply.tool_calls:
        fragments = [
            {"type": "input_json_delta", "partial_json": piece}
            for piece in split_pieces(call.arguments, 4)
        ]
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, fragments


def _build_anthropic_frame(request: dict[str, Any]) -> dict[str, Any]:
    model = request.get("model", "")
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _build_anthropic_call(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = {}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _name_event(data: dict[str, Any], content: bool = False) -> Event:
    return Event(data, name=data["type"], content=content)

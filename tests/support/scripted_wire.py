"""The two wire formats that the scripted model speaks: one reply in, the bodies and stream events of both protocols out."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from chatcore.providers.base import ToolCall

ANTHROPIC_STOP = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
OPENAI_FINISH = {"refusal": "content_filter"}
UNCOUNTED = {"data", "url", "signature"}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the scripted model answers to one request; the same reply works streamed and plain, in both protocols."""

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    reasoning: str = ""
    usage: tuple[int, ...] | Literal[False] | None = (
        None  # (input with caches, output[, cache_read[, cache_write]]); None: characters // 4
    )
    finish: str | None = "stop"  # None: the stream ends cleanly without any finish reason
    status: int = 200  # from 400 on an error body whose message is `text`
    body: bytes | None = None  # sent as it is
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0  # seconds before the first byte
    chunk_delay: float = 0.0  # seconds between content chunks
    chunks: Sequence[str] | None = None  # the pieces of the text
    cut_after: int | None = None  # drop the connection after that many content chunks
    hang: bool = False  # never answer; with cut_after: stop sending there instead of dropping
    bytes_per_write: int | None = (
        None  # cut the byte stream without regard for characters or events
    )

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


def pieces(text: str, count: int = 20) -> list[str]:
    """At most `count` pieces, of at least four characters where there are as many."""
    size = max(4, math.ceil(len(text) / count))
    return [text[i : i + size] for i in range(0, len(text), size)]


def text_pieces(reply: Reply) -> Sequence[str]:
    return pieces(reply.text) if reply.chunks is None else reply.chunks


def counts(reply: Reply, request: dict[str, Any]) -> tuple[int, int, int, int]:
    """Input (caches included), output, cache read and cache write tokens of a call."""
    if reply.usage:
        given = (*reply.usage, 0, 0)
        return given[0], given[1], given[2], given[3]
    asked = sum(_characters(request.get(key)) for key in ("system", "messages", "tools"))
    said = (
        len(reply.words)
        + len(reply.reasoning)
        + sum(len(call.name) + len(call.arguments) for call in reply.tool_calls)
    )
    return max(1, asked // 4), max(1, said // 4), 0, 0


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(_characters(v) for k, v in value.items() if k not in UNCOUNTED)
    return sum(map(_characters, value)) if isinstance(value, list) else 0


def openai_usage(reply: Reply, request: dict[str, Any]) -> dict[str, Any] | None:
    if reply.usage is False:
        return None
    asked, said, read, _ = counts(reply, request)
    usage: dict[str, Any] = {
        "prompt_tokens": asked,
        "completion_tokens": said,
        "total_tokens": asked + said,
    }
    return usage | {"prompt_tokens_details": {"cached_tokens": read}} if read else usage


def openai_completion(reply: Reply, request: dict[str, Any]) -> dict[str, Any]:
    """A whole chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.words or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [_openai_call(call) for call in reply.tool_calls]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": OPENAI_FINISH.get(reply.reason or "", reply.reason),
    }
    return _openai_frame(request, "chat.completion") | {
        "choices": [choice],
        "usage": openai_usage(reply, request),
    }


def openai_events(reply: Reply, request: dict[str, Any]) -> Iterator[Event]:
    """The chunks of a streamed chat completion; the arguments of parallel calls come interleaved, as they may."""
    frame = _openai_frame(request, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None, content: bool = False) -> Event:
        return Event(
            frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]},
            content=content,
        )

    yield chunk({"role": "assistant", "content": ""})
    yield from (
        chunk({"reasoning_content": piece}, content=True) for piece in pieces(reply.reasoning)
    )
    yield from (chunk({"content": piece}, content=True) for piece in text_pieces(reply))
    yield from (
        chunk({"tool_calls": [delta]}, content=True)
        for delta in _openai_call_deltas(reply.tool_calls)
    )
    if reply.finish is None:
        return
    yield chunk({}, OPENAI_FINISH.get(reply.reason or "", reply.reason))
    usage = openai_usage(reply, request)
    if usage and (request.get("stream_options") or {}).get("include_usage"):
        yield Event(frame | {"choices": [], "usage": usage})
    yield Event("[DONE]")


def _openai_frame(request: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-scripted",
        "object": kind,
        "created": 1,
        "model": request.get("model", ""),
    }


def _openai_call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _openai_call_deltas(calls: Sequence[ToolCall]) -> Iterator[dict[str, Any]]:
    for index, call in enumerate(calls):
        yield {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
    fragments = [pieces(call.arguments, 4) for call in calls]
    for step in range(max(map(len, fragments), default=0)):
        for index, fragment in enumerate(fragments):
            if step < len(fragment):
                yield {"index": index, "function": {"arguments": fragment[step]}}


def anthropic_usage(reply: Reply, request: dict[str, Any]) -> dict[str, Any]:
    if reply.usage is False:
        return {}
    asked, said, read, write = counts(reply, request)
    usage = {"input_tokens": asked - read - write, "output_tokens": said}
    return usage | (
        {"cache_read_input_tokens": read, "cache_creation_input_tokens": write}
        if read or write
        else {}
    )


def anthropic_message(reply: Reply, request: dict[str, Any]) -> dict[str, Any]:
    """A whole message."""
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": "signed"})
    if reply.words:
        blocks.append({"type": "text", "text": reply.words})
    blocks += [_anthropic_call(call) for call in reply.tool_calls]
    reason = ANTHROPIC_STOP.get(reply.reason or "", reply.reason)
    return _anthropic_frame(request) | {
        "content": blocks,
        "stop_reason": reason,
        "usage": anthropic_usage(reply, request),
    }


def anthropic_events(reply: Reply, request: dict[str, Any]) -> Iterator[Event]:
    """The events of a streamed message, from message_start to message_stop."""
    usage = anthropic_usage(reply, request)
    opening = usage | {"output_tokens": 1} if usage else usage
    yield _named(
        {
            "type": "message_start",
            "message": _anthropic_frame(request) | {"content": [], "usage": opening},
        }
    )
    yield _named({"type": "ping"})
    for index, (block, deltas) in enumerate(_anthropic_blocks(reply)):
        yield _named({"type": "content_block_start", "index": index, "content_block": block})
        for delta in deltas:
            counted = delta["type"] != "signature_delta"
            yield _named(
                {"type": "content_block_delta", "index": index, "delta": delta}, content=counted
            )
        yield _named({"type": "content_block_stop", "index": index})
    if reply.finish is None:
        return
    reason = ANTHROPIC_STOP.get(reply.reason or "", reply.reason)
    output = {"output_tokens": usage["output_tokens"]} if usage else {}
    yield _named(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": output,
        }
    )
    yield _named({"type": "message_stop"})


def _anthropic_blocks(reply: Reply) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if reply.reasoning:
        thoughts = [
            {"type": "thinking_delta", "thinking": piece} for piece in pieces(reply.reasoning)
        ]
        yield (
            {"type": "thinking", "thinking": "", "signature": ""},
            [*thoughts, {"type": "signature_delta", "signature": "signed"}],
        )
    if reply.words:
        yield (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": piece} for piece in text_pieces(reply)],
        )
    for call in reply.tool_calls:
        fragments = [
            {"type": "input_json_delta", "partial_json": piece}
            for piece in pieces(call.arguments, 4)
        ]
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, fragments


def _anthropic_frame(request: dict[str, Any]) -> dict[str, Any]:
    model = request.get("model", "")
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _anthropic_call(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = {}
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _named(data: dict[str, Any], content: bool = False) -> Event:
    return Event(data, name=data["type"], content=content)

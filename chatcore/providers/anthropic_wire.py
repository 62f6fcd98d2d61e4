"""Anthropic messages on the wire: requests into their form, and events out of it."""

import base64
import re
from collections.abc import Iterator
from itertools import count
from typing import Any, Literal

from chatcore.providers.base import (
    UNSAID,
    ChatMessage,
    Finished,
    Part,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCall,
    Usage,
)
from chatcore.providers.errors import ContextOverflow, ProviderUnavailable
from chatcore.providers.unicode import Joiner, mended

_REASONS: dict[str, Literal["stop", "length", "tool_calls", "refusal"]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}
_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_UNSAID = {"role": "user", "content": [{"type": "text", "text": UNSAID}]}


def system(request: Request) -> str | list[dict[str, Any]]:
    """The system text; in blocks where there are two. Empty when there is none, since the protocol refuses empty text."""
    if not request.preface.strip():
        return request.system if request.system.strip() else ""
    return [
        {"type": "text", "text": text} for text in (request.system, request.preface) if text.strip()
    ]


def messages(request: Request) -> list[dict[str, Any]]:
    """The messages with alternating roles, the user's first, as the protocol wants them; those that say nothing are left out."""
    merged: list[dict[str, Any]] = []
    ids = _Ids()
    for message in request.messages:
        role, blocks = (
            "assistant" if message.role == "assistant" else "user",
            _blocks(message, request.model, ids),
        )
        if blocks and merged and merged[-1]["role"] == role:
            merged[-1]["content"] += blocks
        elif blocks:
            merged.append({"role": role, "content": blocks})
    return [_UNSAID, *merged] if merged and merged[0]["role"] == "assistant" else merged


def tools(request: Request) -> list[dict[str, Any]]:
    """Tool definitions."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in request.tools
    ]


class Answer:
    """An answer while its events arrive. `model` is noted beside its thinking, which only that model may be shown again."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._blocks: dict[int, dict[str, Any]] = {}
        self._counts: dict[str, int] = {}
        self._stop: str | None = None
        self._said = False
        self._text, self._reasoning = Joiner(), Joiner()

    def read(self, event: Any) -> Iterator[Part]:
        """The parts that one event brings."""
        if event.type == "message_start":
            self._count(event.message.usage)
        elif event.type == "content_block_start":
            yield from self._opened(event.index, event.content_block)
        elif event.type == "content_block_delta":
            yield from self._delta(self._blocks[event.index], event.delta)
        elif event.type == "message_delta":
            self._stop = event.delta.stop_reason or self._stop
            self._count(event.usage)

    def finished(self) -> Finished:
        """The last part. Raises ProviderUnavailable when the model never said that it had finished, ContextOverflow when the window
        was full before it said anything."""
        if self._stop is None:
            raise ProviderUnavailable("The provider's stream ended before the answer did.")
        if self._stop == "model_context_window_exceeded" and not self._said:
            raise ContextOverflow(
                "The request fills the model's window and leaves no room for an answer."
            )
        calls = tuple(
            _call(block) for block in self._blocks.values() if block["type"] == "tool_use"
        )
        reason = _REASONS.get(self._stop, "stop")
        if reason in ("stop", "tool_calls"):
            reason = "tool_calls" if calls else "stop"
        whole = calls if reason == "tool_calls" else ()
        return Finished(
            reason=reason, tool_calls=whole, usage=self._usage(), provider_data=self._thinking()
        )

    def _opened(self, index: int, block: Any) -> Iterator[Part]:
        self._blocks[index] = opened = block.to_dict()
        if opened["type"] == "tool_use":
            opened["arguments"] = ""
            self._said = True
        elif opened.get("text"):
            yield self._spoken(opened["text"])

    def _delta(self, block: dict[str, Any], delta: Any) -> Iterator[Part]:
        if delta.type == "text_delta":
            yield self._spoken(delta.text)
        elif delta.type == "thinking_delta":
            self._said = True
            block["thinking"] += delta.thinking
            yield ReasoningDelta(self._reasoning.join(delta.thinking))
        elif delta.type == "signature_delta":
            block["signature"] = delta.signature
        elif delta.type == "input_json_delta":
            block["arguments"] = block.get("arguments", "") + delta.partial_json

    def _spoken(self, text: str) -> TextDelta:
        self._said = True
        return TextDelta(self._text.join(text))

    def _count(self, reported: Any) -> None:
        """Counts come in two events, and the later ones are the whole message's."""
        given = {name: getattr(reported, name, None) for name in _COUNTS}
        self._counts |= {name: count for name, count in given.items() if isinstance(count, int)}

    def _usage(self) -> Usage | None:
        if "input_tokens" not in self._counts:
            return None
        read, write = (
            self._counts.get("cache_read_input_tokens"),
            self._counts.get("cache_creation_input_tokens"),
        )
        return Usage(
            input=self._counts["input_tokens"] + (read or 0) + (write or 0),
            output=self._counts.get("output_tokens", 0),
            cache_read=read,
            cache_write=write,
        )

    def _thinking(self) -> dict[str, Any]:
        blocks = [
            block
            for block in self._blocks.values()
            if block["type"] in ("thinking", "redacted_thinking")
        ]
        return {"anthropic": {"model": self._model, "thinking": blocks}} if blocks else {}


def _call(block: dict[str, Any]) -> ToolCall:
    if not block.get("id") or not block.get("name"):
        raise ProviderUnavailable("The provider sent a tool call without a name.")
    return ToolCall(
        id=block["id"], name=block["name"], arguments=mended(block["arguments"]) or "{}"
    )


class _Ids:
    """The ids of calls as the protocol takes them: without characters that another provider's may have, and each once in a request."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._taken: set[str] = set()

    def of_call(self, call_id: str) -> str:
        """A new id, which the results of this name have from now on."""
        plain = re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)
        free = (f"{plain}_{number}" if number > 1 else plain for number in count(1))
        self._given[call_id] = given = next(name for name in free if name not in self._taken)
        self._taken.add(given)
        return given

    def of_result(self, call_id: str) -> str:
        """The id of the newest call of this name."""
        return self._given.get(call_id) or self.of_call(call_id)


def _blocks(message: ChatMessage, model: str, ids: _Ids) -> list[dict[str, Any]]:
    """A message as content blocks; empty when it says nothing, since the protocol refuses empty text."""
    if message.role == "tool":
        return [_result(message, ids)]
    blocks = [_image(image.media_type, image.data) for image in message.images]
    if message.content.strip():
        blocks.append({"type": "text", "text": message.content})
    blocks += [
        {
            "type": "tool_use",
            "id": ids.of_call(call.id),
            "name": call.name,
            "input": call.as_object(),
        }
        for call in message.tool_calls
    ]
    kept = message.provider_data.get("anthropic", {})
    return [*kept["thinking"], *blocks] if blocks and kept.get("model") == model else blocks


def _result(message: ChatMessage, ids: _Ids) -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": ids.of_result(message.tool_call_id),
    }
    text = [{"type": "text", "text": message.content}] if message.content.strip() else []
    if message.images:
        result["content"] = [
            *text,
            *(_image(image.media_type, image.data) for image in message.images),
        ]
    elif text:
        result["content"] = message.content
    return result | ({"is_error": True} if message.is_error else {})


def _image(media_type: str, data: bytes) -> dict[str, Any]:
    return {
        "type": "image",
        "source": {
            "type": "base64",
            "media_type": media_type,
            "data": base64.b64encode(data).decode(),
        },
    }

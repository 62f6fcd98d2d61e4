"""Convert requests to Anthropic's Messages, and events of a stream to parts of an answer."""

import base64
import re
from collections.abc import Iterator
from itertools import count
from typing import Any, Literal

from chatcore.providers.base import (
    EARLIER_MESSAGES_NOTICE,
    ChatMessage,
    ReasoningDelta,
    Request,
    StreamEnd,
    StreamPart,
    TextDelta,
    ToolCall,
    Usage,
)
from chatcore.providers.errors import ContextOverflow, ProviderUnavailable
from chatcore.providers.unicode import SurrogateJoiner, mend_surrogates

_FINISH_REASONS: dict[str, Literal["stop", "length", "tool_calls", "refusal"]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}
_USAGE_FIELDS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_NOTICE_MESSAGE = {"role": "user", "content": [{"type": "text", "text": EARLIER_MESSAGES_NOTICE}]}


def build_system(request: Request) -> str | list[dict[str, Any]]:
    """Return the system text, or two blocks if there is a preface.

    An empty text means that there is nothing to send: the protocol refuses empty texts.
    """
    if not request.preface.strip():
        return request.system if request.system.strip() else ""
    return [
        {"type": "text", "text": text} for text in (request.system, request.preface) if text.strip()
    ]


def build_messages(request: Request) -> list[dict[str, Any]]:
    """Return the messages of a request, without empty ones.

    The roles alternate and the user's comes first, as the protocol requires.
    """
    api_messages: list[dict[str, Any]] = []
    call_ids = _CallIds()
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _build_blocks(message, request.model, call_ids)
        if not blocks:
            continue
        if api_messages and api_messages[-1]["role"] == role:
            api_messages[-1]["content"] += blocks
        else:
            api_messages.append({"role": role, "content": blocks})
    if api_messages and api_messages[0]["role"] == "assistant":
        return [_NOTICE_MESSAGE, *api_messages]
    return api_messages


def build_tools(request: Request) -> list[dict[str, Any]]:
    """Return the tool definitions of a request."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in request.tools
    ]


class AnthropicStreamReader:
    """Collects an answer while its events arrive.

    `model` is stored with the thinking, which only this model may receive again.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._blocks: dict[int, dict[str, Any]] = {}
        self._counts: dict[str, int] = {}
        self._stop_reason: str | None = None
        self._has_output = False
        self._text_joiner = SurrogateJoiner()
        self._reasoning_joiner = SurrogateJoiner()

    def read_event(self, event: Any) -> Iterator[StreamPart]:
        """Yield the parts of one event."""
        if event.type == "message_start":
            self._record_usage(event.message.usage)
        elif event.type == "content_block_start":
            yield from self._open_block(event.index, event.content_block)
        elif event.type == "content_block_delta":
            yield from self._read_delta(self._blocks[event.index], event.delta)
        elif event.type == "message_delta":
            self._stop_reason = event.delta.stop_reason or self._stop_reason
            self._record_usage(event.usage)

    def build_stream_end(self) -> StreamEnd:
        """Return the last part.

        Raises ProviderUnavailable if no event said that the answer ended, and ContextOverflow if
        the window was full before anything was written.
        """
        if self._stop_reason is None:
            raise ProviderUnavailable("The provider's stream ended before the answer did.")
        if self._stop_reason == "model_context_window_exceeded" and not self._has_output:
            raise ContextOverflow(
                "The request fills the model's window and leaves no room for an answer."
            )
        tool_calls = tuple(
            _to_tool_call(block) for block in self._blocks.values() if block["type"] == "tool_use"
        )
        reason = _FINISH_REASONS.get(self._stop_reason, "stop")
        if reason in ("stop", "tool_calls"):
            reason = "tool_calls" if tool_calls else "stop"
        else:
            # Calls of an answer that was cut or refused may be incomplete, so they are dropped.
            tool_calls = ()
        return StreamEnd(
            reason=reason,
            tool_calls=tool_calls,
            usage=self._build_usage(),
            provider_data=self._collect_thinking(),
        )

    def _open_block(self, index: int, block: Any) -> Iterator[StreamPart]:
        block_data = block.to_dict()
        self._blocks[index] = block_data
        if block_data["type"] == "tool_use":
            block_data["arguments"] = ""
            self._has_output = True
        elif block_data.get("text"):
            yield self._emit_text(block_data["text"])

    def _read_delta(self, block: dict[str, Any], delta: Any) -> Iterator[StreamPart]:
        if delta.type == "text_delta":
            yield self._emit_text(delta.text)
        elif delta.type == "thinking_delta":
            self._has_output = True
            block["thinking"] += delta.thinking
            yield ReasoningDelta(self._reasoning_joiner.join(delta.thinking))
        elif delta.type == "signature_delta":
            block["signature"] = delta.signature
        elif delta.type == "input_json_delta":
            block["arguments"] = block.get("arguments", "") + delta.partial_json

    def _emit_text(self, text: str) -> TextDelta:
        self._has_output = True
        return TextDelta(self._text_joiner.join(text))

    def _record_usage(self, api_usage: Any) -> None:
        # Counts come in two events; the later ones are for the whole message.
        usage_counts = {name: getattr(api_usage, name, None) for name in _USAGE_FIELDS}
        self._counts |= {
            name: value for name, value in usage_counts.items() if isinstance(value, int)
        }

    def _build_usage(self) -> Usage | None:
        if "input_tokens" not in self._counts:
            return None
        cache_read = self._counts.get("cache_read_input_tokens")
        cache_write = self._counts.get("cache_creation_input_tokens")
        return Usage(
            input=self._counts["input_tokens"] + (cache_read or 0) + (cache_write or 0),
            output=self._counts.get("output_tokens", 0),
            cache_read=cache_read,
            cache_write=cache_write,
        )

    def _collect_thinking(self) -> dict[str, Any]:
        blocks = [
            block
            for block in self._blocks.values()
            if block["type"] in ("thinking", "redacted_thinking")
        ]
        return {"anthropic": {"model": self._model, "thinking": blocks}} if blocks else {}


def _to_tool_call(block: dict[str, Any]) -> ToolCall:
    if not block.get("id") or not block.get("name"):
        raise ProviderUnavailable("The provider sent a tool call without a name.")
    return ToolCall(
        id=block["id"], name=block["name"], arguments=mend_surrogates(block["arguments"]) or "{}"
    )


class _CallIds:
    """The ids of the calls of one request in the form that the protocol accepts.

    They have no characters that only other providers allow, and each occurs once.
    """

    def __init__(self) -> None:
        self._id_by_call: dict[str, str] = {}
        self._all_ids: set[str] = set()

    def assign_id(self, call_id: str) -> str:
        """Return a new id for a call, which its results get from now on."""
        base_id = re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)
        candidates = (f"{base_id}_{number}" if number > 1 else base_id for number in count(1))
        new_id = next(candidate for candidate in candidates if candidate not in self._all_ids)
        self._id_by_call[call_id] = new_id
        self._all_ids.add(new_id)
        return new_id

    def find_result_id(self, call_id: str) -> str:
        """Return the id of the newest call that had this id."""
        return self._id_by_call.get(call_id) or self.assign_id(call_id)


def _build_blocks(message: ChatMessage, model: str, call_ids: _CallIds) -> list[dict[str, Any]]:
    """Return a message as content blocks, none if it is empty: the protocol refuses empty texts."""
    if message.role == "tool":
        return [_build_tool_result(message, call_ids)]
    blocks = [_build_image(image.media_type, image.data) for image in message.images]
    if message.content.strip():
        blocks.append({"type": "text", "text": message.content})
    blocks += [
        {
            "type": "tool_use",
            "id": call_ids.assign_id(call.id),
            "name": call.name,
            "input": call.parse_arguments(),
        }
        for call in message.tool_calls
    ]
    own_data = message.provider_data.get("anthropic", {})
    if blocks and own_data.get("model") == model:
        return [*own_data["thinking"], *blocks]
    return blocks


def _build_tool_result(message: ChatMessage, call_ids: _CallIds) -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": call_ids.find_result_id(message.tool_call_id),
    }
    has_text = bool(message.content.strip())
    if message.images:
        blocks = [_build_image(image.media_type, image.data) for image in message.images]
        if has_text:
            blocks.insert(0, {"type": "text", "text": message.content})
        result["content"] = blocks
    elif has_text:
        result["content"] = message.content
    if message.is_error:
        result["is_error"] = True
    return result


def _build_image(media_type: str, data: bytes) -> dict[str, Any]:
    return {
        "type": "image",
        "source": {
            "type": "base64",
            "media_type": media_type,
            "data": base64.b64encode(data).decode(),
        },
    }

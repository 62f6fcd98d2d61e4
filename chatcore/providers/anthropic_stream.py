"""Read the events of a streamed message as parts of an answer."""

import json
from collections.abc import Iterable
from typing import Any

from chatcore.providers.answer_reader import (
    ErrorEvent,
    PartJoiner,
    build_call_id,
    check_end,
    number_twin_calls,
    parse_error,
    parse_objects,
    reports_error,
)
from chatcore.providers.base import (
    StreamEnd,
    StreamPart,
    ToolCall,
    Usage,
    mend_surrogates,
    parse_count,
)
from chatcore.providers.collected_text import CollectedText
from chatcore.providers.errors import ProviderUnavailable
from chatcore.providers.provider_data import CALL, THOUGHT, is_usual_order
from chatcore.providers.server_sent_events import Event

THOUGHT_KINDS = ("thinking", "redacted_thinking")
# The kind of block that a delta belongs to.
_BLOCK_KINDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}
_EVENT_KINDS = frozenset(
    {
        "message",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    }
)
_USAGE_FIELDS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class AnthropicStreamReader:
    """Collects an answer while its events arrive (the protocol AnswerReader).

    `model` is stored with the thinking, which only this model may receive again. With
    `reports_thoughts`, the parts include each signed thought at its end.
    """

    def __init__(self, model: str, *, reports_thoughts: bool = False) -> None:
        self.event_count = 0
        self.is_done = False
        self._model = model
        self._reports_thoughts = reports_thoughts
        self._part_joiner = PartJoiner()
        self._blocks: dict[int, _Block] = {}
        self._counts: dict[str, int] = {}
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None
        self._has_output = False
        self._is_marked = False

    def read_events(self, events: Iterable[Event]) -> None:
        """Collect events. Raises ErrorEvent, and any exception for JSON of an unexpected shape."""
        for name, data in events:
            if name == b"error":
                raise ErrorEvent(parse_error(data))
            for event in parse_objects(data):
                # Some gateways name no events; the type stands in each.
                kind = event.get("type") or name.decode(errors="replace")
                if kind == "error" or (kind not in _EVENT_KINDS and reports_error(event)):
                    raise ErrorEvent(event)
                self._read_event(kind, event)

    def end(self) -> None:
        """Release what was held back, before the last parts are taken."""
        self._part_joiner.end()

    def take_parts(self) -> list[StreamPart]:
        """Return the deltas since the last time; neighbors of one kind are one part."""
        return self._part_joiner.take_parts()

    def build_stream_end(self) -> StreamEnd:
        """Return the last part.

        Raises ProviderUnavailable if no event ended the answer, and ContextOverflow if the window
        was full before anything was written.
        """
        reason = check_end(
            self._stop_reason, is_marked=self._is_marked, has_output=self._has_output
        )
        tool_calls: tuple[ToolCall, ...] = ()
        if reason in ("stop", "tool_calls"):
            # Calls of an answer that was cut or refused may be incomplete, so they are dropped.
            tool_calls = number_twin_calls(
                block.to_tool_call() for block in self._blocks.values() if block.kind == "tool_use"
            )
            reason = "tool_calls" if tool_calls else "stop"
        return StreamEnd(
            reason=reason,
            stop_sequence=self._stop_sequence,
            word=self._stop_reason or "",
            tool_calls=tool_calls,
            usage=self._build_usage(),
            provider_data=self._collect_thinking(),
        )

    def _read_event(self, kind: str, event: dict[str, Any]) -> None:
        self.event_count += kind in _EVENT_KINDS
        if kind == "content_block_delta":
            delta = event["delta"]
            self._read_delta(self._find_block(event.get("index"), delta), delta)
        elif kind == "content_block_start":
            self._open_block(event.get("index"), event["content_block"])
        elif kind == "content_block_stop":
            self._close_block(event.get("index"))
        elif kind in ("message_start", "message"):
            self._read_message(event.get("message") or event)
        elif kind == "message_delta":
            self._read_stop(event.get("delta") or event)
            self._record_usage(event.get("usage"))
        elif kind == "message_stop":
            self._is_marked = True

    def _read_message(self, message: dict[str, Any]) -> None:
        """Read the frame of a message, or a whole one of a server that cannot stream."""
        self._record_usage(message.get("usage"))
        for index, fields in enumerate(message.get("content") or ()):
            self._open_block(index, fields)
            self._close_block(index)
        self._read_stop(message)

    def _read_stop(self, fields: dict[str, Any]) -> None:
        self._stop_reason = fields.get("stop_reason") or self._stop_reason
        self._stop_sequence = fields.get("stop_sequence") or self._stop_sequence

    def _find_block(self, index: int | None, delta: dict[str, Any]) -> "_Block":
        """Return the block of a delta. Some gateways do not say where one starts."""
        if index is None and self._blocks:
            index = max(self._blocks)
        index = index or 0
        if index not in self._blocks:
            self._open_block(index, {"type": _BLOCK_KINDS.get(delta.get("type", ""), "text")})
        return self._blocks[index]

    def _open_block(self, index: int | None, fields: dict[str, Any]) -> None:
        block = _Block(fields)
        self._blocks[len(self._blocks) if index is None else index] = block
        if block.kind == "tool_use":
            self._has_output = True
        elif fields.get("text"):
            self._add_text(fields["text"])
        elif block.kind == "thinking" and fields.get("thinking"):
            self._has_output = True
            self._part_joiner.add_reasoning(fields["thinking"])

    def _close_block(self, index: int | None) -> None:
        if index is None and self._blocks:
            index = max(self._blocks)
        block = self._blocks.get(index or 0)
        if self._reports_thoughts and block and block.kind in THOUGHT_KINDS:
            self._part_joiner.add_thought(block.to_thinking())

    def _read_delta(self, block: "_Block", delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "text_delta":
            block.text_length += len(delta["text"])
            self._add_text(delta["text"])
        elif kind == "thinking_delta":
            self._has_output = True
            block.thinking.add_piece(delta["thinking"])
            self._part_joiner.add_reasoning(delta["thinking"])
        elif kind == "signature_delta":
            block.fields["signature"] = delta["signature"]
        elif kind == "input_json_delta":
            block.arguments.add_piece(delta.get("partial_json") or "")

    def _add_text(self, text: str) -> None:
        self._has_output = True
        self._part_joiner.add_text(text)

    def _record_usage(self, api_usage: object) -> None:
        # Counts come in two events; the later ones are for the whole message.
        if isinstance(api_usage, dict):
            for name in _USAGE_FIELDS:
                count = parse_count(api_usage.get(name))
                if count is not None:
                    self._counts[name] = count

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

    def _collect_thinking(self) -> dict[str, object]:
        blocks = [
            block.to_thinking() for block in self._blocks.values() if block.kind in THOUGHT_KINDS
        ]
        if not blocks:
            return {}
        thinking: dict[str, object] = {"model": self._model, "thinking": blocks}
        order = [block.place for block in self._blocks.values() if block.place]
        if not is_usual_order(order):
            thinking["order"] = order
        return {"anthropic": thinking}


class _Block:
    """Collects a content block while its deltas arrive. `fields` are those of its first event."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.kind: str = fields["type"]
        self.fields = fields
        self.thinking = CollectedText()
        self.arguments = CollectedText()
        self.text_length = len(fields.get("text") or "")

    @property
    def place(self) -> str | int:
        """What stands at its place in the stored order of an answer: a kind, or a text's length."""
        if self.kind in THOUGHT_KINDS:
            return THOUGHT
        return CALL if self.kind == "tool_use" else self.text_length

    def to_tool_call(self) -> ToolCall:
        if not self.fields.get("name"):
            raise ProviderUnavailable("The provider sent a tool call without a name.")
        arguments = mend_surrogates(self.arguments.join())
        if not arguments and isinstance(self.fields.get("input"), dict):
            arguments = json.dumps(self.fields["input"], ensure_ascii=False)
        return ToolCall(
            id=str(self.fields.get("id") or build_call_id()),
            name=str(self.fields["name"]),
            arguments=arguments or "{}",
        )

    def to_thinking(self) -> dict[str, object]:
        """Return the block as the protocol wants it back, unchanged and signed."""
        thinking = mend_surrogates(self.thinking.join())
        if not thinking:
            return self.fields
        return self.fields | {"thinking": self.fields.get("thinking", "") + thinking}

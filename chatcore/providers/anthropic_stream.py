"""Read the events of a streamed message as parts of an answer."""

from collections.abc import Iterable
from typing import Any, Literal

from chatcore.providers.answer_reader import CollectedText, ErrorEvent, PartJoiner, parse_json
from chatcore.providers.base import StreamEnd, StreamPart, ToolCall, Usage
from chatcore.providers.errors import ContextOverflow, ProviderUnavailable
from chatcore.providers.server_sent_events import Event
from chatcore.providers.unicode import mend_surrogates

_FINISH_REASONS: dict[str, Literal["stop", "length", "tool_calls", "refusal"]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}
THOUGHT_KINDS = ("thinking", "redacted_thinking")
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

    def read_events(self, events: Iterable[Event]) -> None:
        """Collect events. Raises ErrorEvent, and any exception for JSON of an unexpected shape."""
        for name, data in events:
            if name == b"error":
                raise ErrorEvent(_parse_error(data))
            # The protocol names every event. A server that does not speaks another one.
            if data and name and name != b"ping":
                self.event_count += 1
                self._read_event(parse_json(data))

    def take_parts(self) -> list[StreamPart]:
        """Return the deltas since the last time; neighbors of one kind are one part."""
        return self._part_joiner.take_parts()

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
            block.to_tool_call() for block in self._blocks.values() if block.kind == "tool_use"
        )
        reason = _FINISH_REASONS.get(self._stop_reason, "stop")
        if reason in ("stop", "tool_calls"):
            reason = "tool_calls" if tool_calls else "stop"
        else:
            # Calls of an answer that was cut or refused may be incomplete, so they are dropped.
            tool_calls = ()
        return StreamEnd(
            reason=reason,
            stop_sequence=self._stop_sequence,
            tool_calls=tool_calls,
            usage=self._build_usage(),
            provider_data=self._collect_thinking(),
        )

    def _read_event(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "content_block_delta":
            self._read_delta(self._blocks[event["index"]], event["delta"])
        elif kind == "content_block_start":
            self._open_block(event["index"], event["content_block"])
        elif kind == "content_block_stop":
            self._close_block(event["index"])
        elif kind == "message_start":
            self._record_usage(event["message"].get("usage"))
        elif kind == "message_delta":
            self._stop_reason = event["delta"].get("stop_reason") or self._stop_reason
            self._stop_sequence = event["delta"].get("stop_sequence") or self._stop_sequence
            self._record_usage(event.get("usage"))

    def _open_block(self, index: int, fields: dict[str, Any]) -> None:
        block = _Block(fields)
        self._blocks[index] = block
        if block.kind == "tool_use":
            self._has_output = True
        elif fields.get("text"):
            self._add_text(fields["text"])

    def _close_block(self, index: int) -> None:
        block = self._blocks.get(index)
        if self._reports_thoughts and block and block.kind in THOUGHT_KINDS:
            self._part_joiner.add_thought(block.to_thinking())

    def _read_delta(self, block: "_Block", delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "text_delta":
            self._add_text(delta["text"])
        elif kind == "thinking_delta":
            self._has_output = True
            block.thinking.add_piece(delta["thinking"])
            self._part_joiner.add_reasoning(delta["thinking"])
        elif kind == "signature_delta":
            block.fields["signature"] = delta["signature"]
        elif kind == "input_json_delta":
            block.arguments.add_piece(delta["partial_json"])

    def _add_text(self, text: str) -> None:
        self._has_output = True
        self._part_joiner.add_text(text)

    def _record_usage(self, api_usage: Any) -> None:
        # Counts come in two events; the later ones are for the whole message.
        if isinstance(api_usage, dict):
            for name in _USAGE_FIELDS:
                if isinstance(api_usage.get(name), int):
                    self._counts[name] = api_usage[name]

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
            block.to_thinking() for block in self._blocks.values() if block.kind in THOUGHT_KINDS
        ]
        return {"anthropic": {"model": self._model, "thinking": blocks}} if blocks else {}


class _Block:
    """Collects a content block while its deltas arrive. `fields` are those of its first event."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.kind: str = fields["type"]
        self.fields = fields
        self.thinking = CollectedText()
        self.arguments = CollectedText()

    def to_tool_call(self) -> ToolCall:
        if not self.fields.get("id") or not self.fields.get("name"):
            raise ProviderUnavailable("The provider sent a tool call without a name.")
        arguments = mend_surrogates(self.arguments.join())
        return ToolCall(id=self.fields["id"], name=self.fields["name"], arguments=arguments or "{}")

    def to_thinking(self) -> dict[str, Any]:
        """Return the block as the protocol wants it back, unchanged and signed."""
        thinking = mend_surrogates(self.thinking.join())
        if not thinking:
            return self.fields
        return self.fields | {"thinking": self.fields.get("thinking", "") + thinking}


def _parse_error(data: bytes) -> Any:
    """Return the body of an error event, as text if it is no JSON."""
    try:
        return parse_json(data)
    except (ValueError, RecursionError):
        return data.decode(errors="replace")

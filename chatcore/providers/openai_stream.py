"""Read the chunks of a streamed chat completion as parts of an answer."""

from collections.abc import Iterable
from typing import Any, Literal
from uuid import uuid4

from chatcore.providers.answer_reader import CollectedText, ErrorEvent, PartJoiner, parse_json
from chatcore.providers.base import StreamEnd, StreamPart, ToolCall, Usage
from chatcore.providers.errors import ProviderUnavailable
from chatcore.providers.server_sent_events import Event
from chatcore.providers.unicode import mend_surrogates

_FINISH_REASONS: dict[str, Literal["stop", "length", "tool_calls", "refusal"]] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
}


def parse_usage(api_usage: Any) -> Usage | None:
    """Return the reported tokens, or None. Here `prompt_tokens` includes the cached ones."""
    if not isinstance(api_usage, dict) or api_usage.get("prompt_tokens") is None:
        return None
    details = api_usage.get("prompt_tokens_details")
    if not isinstance(details, dict):
        details = {}
    return Usage(
        input=api_usage["prompt_tokens"],
        output=api_usage.get("completion_tokens") or 0,
        cache_read=details.get("cached_tokens"),
        cache_write=details.get("cache_write_tokens"),
    )


class OpenAIStreamReader:
    """Collects an answer while its chunks arrive (the protocol AnswerReader).

    `model` is stored with the data that only this model may receive again.
    """

    def __init__(self, model: str) -> None:
        self.event_count = 0
        self.is_done = False
        self._model = model
        self._part_joiner = PartJoiner()
        self._thoughts = CollectedText()
        self._calls: list[_PartialCall] = []
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._stop_sequence: str | None = None
        self._is_refusal = False

    def read_events(self, events: Iterable[Event]) -> None:
        """Collect events. Raises ErrorEvent, and any exception for JSON of an unexpected shape."""
        for _name, data in events:
            if data.startswith(b"[DONE]"):
                self.is_done = True
                return
            chunk = parse_json(data)
            error = chunk.get("error")
            if error:
                raise ErrorEvent(error)
            self.event_count += 1
            self._read_chunk(chunk)

    def take_parts(self) -> list[StreamPart]:
        """Return the deltas since the last time; neighbors of one kind are one part."""
        return self._part_joiner.take_parts()

    def build_stream_end(self) -> StreamEnd:
        """Return the last part. Raises ProviderUnavailable if no chunk ended the answer."""
        if self._finish_reason in (None, "error"):
            raise ProviderUnavailable("The provider's stream ended before the answer did.")
        tool_calls = tuple(call.to_tool_call() for call in self._calls)
        reason = _FINISH_REASONS.get(self._finish_reason or "", "stop")
        if self._is_refusal:
            reason = "refusal"
        if reason not in ("stop", "tool_calls"):
            # Calls of an answer that was cut or refused may be incomplete, so they are dropped.
            return StreamEnd(reason=reason, usage=self._usage)
        return StreamEnd(
            # Not every server distinguishes the two, so the calls decide.
            reason="tool_calls" if tool_calls else "stop",
            stop_sequence=self._stop_sequence,
            tool_calls=tool_calls,
            usage=self._usage,
            provider_data=self._build_provider_data(),
        )

    def _build_provider_data(self) -> dict[str, Any]:
        """Return what some servers require back with the calls.

        DeepSeek requires the reasoning, Gemini a signature for each call.
        """
        if not self._calls:
            return {}
        thoughts = mend_surrogates(self._thoughts.join())
        extras = {call.id: call.extra for call in self._calls if call.extra}
        if not (thoughts or extras):
            return {}
        return {"openai": {"model": self._model, "reasoning": thoughts, "extras": extras}}

    def _read_chunk(self, chunk: dict[str, Any]) -> None:
        api_usage = chunk.get("usage")
        if api_usage:
            self._usage = parse_usage(api_usage) or self._usage
        for choice in chunk.get("choices") or ():
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
            stop_sequence = choice.get("stop_reason")  # vLLM's
            if isinstance(stop_sequence, str):
                self._stop_sequence = stop_sequence
            delta = choice.get("delta")
            if delta is not None:
                self._read_delta(delta)

    def _read_delta(self, delta: dict[str, Any]) -> None:
        reasoning = delta.get("reasoning_content")
        if reasoning:
            self._thoughts.add_piece(reasoning)
        else:
            # The field of OpenRouter and others, which do not require it back.
            reasoning = delta.get("reasoning")
        if reasoning:
            self._part_joiner.add_reasoning(reasoning)
        content = delta.get("content")
        if content:
            self._read_content(content)
        refusal = delta.get("refusal")
        if refusal:
            self._is_refusal = True
            self._part_joiner.add_text(refusal)
        for fragment in delta.get("tool_calls") or ():
            self._find_call(fragment).add_fragment(fragment)

    def _read_content(self, content: Any) -> None:
        """Collect text; Mistral's reasoning models send a list of typed pieces instead."""
        if isinstance(content, str):
            self._part_joiner.add_text(content)
            return
        for piece in content:
            if piece.get("type") == "thinking":
                reasoning = "".join(thought.get("text", "") for thought in piece["thinking"])
                self._part_joiner.add_reasoning(reasoning)
            elif piece.get("text"):
                self._part_joiner.add_text(piece["text"])

    def _find_call(self, fragment: dict[str, Any]) -> "_PartialCall":
        """Return the call to which a fragment belongs, perhaps a new one.

        Some servers give every parallel call the index 0, or none, so a new id begins a new call.
        """
        index = fragment.get("index") or 0
        fragment_id = fragment.get("id")
        for call in reversed(self._calls):
            if call.index == index and fragment_id in (None, "", call.id):
                return call
        self._calls.append(_PartialCall(index, fragment_id or f"call_{uuid4().hex[:24]}"))
        return self._calls[-1]


class _PartialCall:
    """Collects a tool call while its fragments arrive."""

    def __init__(self, index: int, id: str) -> None:
        self.index = index
        self.id = id
        self.name = ""
        self.arguments = CollectedText()
        self.extra: dict[str, Any] = {}

    def add_fragment(self, fragment: dict[str, Any]) -> None:
        self.extra |= fragment.get("extra_content") or {}
        function = fragment.get("function")
        if function is not None:
            self.name = self.name or function.get("name") or ""
            self.arguments.add_piece(function.get("arguments") or "")

    def to_tool_call(self) -> ToolCall:
        if not self.name:
            raise ProviderUnavailable("The provider sent a tool call without a name.")
        arguments = mend_surrogates(self.arguments.join())
        return ToolCall(id=self.id, name=self.name, arguments=arguments or "{}")

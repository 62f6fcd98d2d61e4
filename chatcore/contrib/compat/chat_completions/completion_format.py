"""Format answers as OpenAI does: a whole completion, or the chunks of a streamed one."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from chatcore.contrib.compat.sealed_data import seal
from chatcore.providers.base import StreamEnd, StreamPart, TextDelta, Usage

# Clients know no word for an end that nobody knows; what they know is that such an answer is cut.
FINISH_REASONS = {"refusal": "content_filter", "unknown": "length"}


# The member of a call's `extra_content` that is ours.
SEAL_NAME = "chatcore"


@dataclass(frozen=True, kw_only=True)
class CompletionEnvelope:
    """The members that all chunks of one completion share."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def format_chunk(self, *choices: dict[str, Any], **members: Any) -> bytes:
        """Return one chunk as an event of a stream."""
        head = self._build_head("chat.completion.chunk")
        return format_event(head | {"choices": choices} | members)

    def format_completion(self, text: str, reasoning: str, final_part: StreamEnd) -> dict[str, Any]:
        """Return the whole completion."""
        # OpenAI sends null, not "", as the content of an answer that only calls tools.
        content = text if text or not final_part.tool_calls else None
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if reasoning:
            message["reasoning_content"] = reasoning
        if final_part.tool_calls:
            message |= _get_reasoning_details(final_part)
            message["tool_calls"] = _format_calls(final_part)
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _get_finish_reason(final_part),
        }
        head = self._build_head("chat.completion")
        return head | {"choices": [choice], "usage": format_usage(final_part.usage)}

    def _build_head(self, object_type: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": object_type,
            "created": self.created,
            "model": self.model,
        }


def format_usage(usage: Usage | None) -> dict[str, Any]:
    """Return the token counts under OpenAI's names; zeros if the provider gave none."""
    if usage is None:
        usage = Usage(input=0, output=0)
    body: dict[str, Any] = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }
    if usage.cache_read is not None:
        body["prompt_tokens_details"] = {"cached_tokens": usage.cache_read}
    return body


def format_choice(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    """Return the choice of a chunk. There is only ever one, since `n` is 1."""
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def iterate_choices(part: StreamPart) -> Iterator[dict[str, Any]]:
    """Yield the choice of each chunk that a part of the answer becomes."""
    if isinstance(part, StreamEnd):
        details = _get_reasoning_details(part)
        if details:
            yield format_choice(details)
        for index, call in enumerate(_format_calls(part)):
            for delta in _build_call_deltas(index, call):
                yield format_choice({"tool_calls": [delta]})
        yield format_choice({}, _get_finish_reason(part))
    elif isinstance(part, TextDelta):
        yield format_choice({"content": part.text})
    else:
        yield format_choice({"reasoning_content": part.text})


def format_event(data: dict[str, Any]) -> bytes:
    """Return an event of a stream: one `data` line of JSON."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return b"data: " + text.encode() + b"\n\n"


def _build_call_deltas(index: int, call: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two deltas, as OpenAI sends them: the name of the function, then its arguments."""
    function = call["function"]
    name_delta = call | {"index": index, "function": function | {"arguments": ""}}
    return name_delta, {"index": index, "function": {"arguments": function["arguments"]}}


def _format_calls(final_part: StreamEnd) -> list[dict[str, Any]]:
    """Return the calls, with what the provider wants back of them.

    Gemini's clients know `extra_content`, and send it back. So the rest of what the provider wants
    back travels there too, sealed, with the first call.
    """
    extras = final_part.provider_data.get("openai", {}).get("extras", {})
    calls: list[dict[str, Any]] = []
    for call in final_part.tool_calls:
        extra = dict(extras.get(call.id, {}))
        if not calls and final_part.provider_data:
            extra[SEAL_NAME] = {"sealed": seal(final_part.provider_data)}
        function = {"name": call.name, "arguments": call.arguments}
        formatted_call: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
        calls.append(formatted_call | ({"extra_content": extra} if extra else {}))
    return calls


def _get_reasoning_details(final_part: StreamEnd) -> dict[str, Any]:
    """Return OpenRouter's details of reasoning, which its clients know and send back."""
    details = final_part.provider_data.get("openai", {}).get("reasoning_details")
    return {"reasoning_details": details} if details else {}


def _get_finish_reason(final_part: StreamEnd) -> str:
    return FINISH_REASONS.get(final_part.reason, final_part.reason)

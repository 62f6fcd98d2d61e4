"""Format answers as Anthropic does: a whole message, or the events of a streamed one."""

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from chatcore.faces.messages.input_messages import OWN_SIGNATURE
from chatcore.providers.base import StreamEnd, ToolCall, Usage

Block = dict[str, Any]
STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "refusal",
}
PING_EVENT = b'event: ping\ndata: {"type": "ping"}\n\n'


@dataclass(frozen=True, kw_only=True)
class MessageEnvelope:
    """The members that a message has from its first event on."""

    model: str
    id: str = field(default_factory=lambda: f"msg_{uuid4().hex}")

    def format_message(
        self, content: list[Block], usage: dict[str, Any], **members: Any
    ) -> dict[str, Any]:
        """Return the message."""
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        } | members


def build_content(text: str, thoughts: list[Block], final_part: StreamEnd) -> list[Block]:
    """Return the blocks of a whole answer."""
    blocks = list(thoughts)
    if text:
        blocks.append({"type": "text", "text": text})
    return blocks + [build_call(call) for call in final_part.tool_calls]


def build_thoughts(reasoning: str, final_part: StreamEnd) -> list[Block]:
    """Return the thoughts of an answer: as its provider signed them, or else as they were told."""
    thoughts = final_part.provider_data.get("anthropic", {}).get("thinking")
    if thoughts:
        return list(thoughts)
    return [build_thought(reasoning)] if reasoning else []


def build_thought(reasoning: str) -> Block:
    """Return a thought that no provider has signed."""
    return {"type": "thinking", "thinking": reasoning, "signature": OWN_SIGNATURE}


def build_call(call: ToolCall) -> Block:
    """Return the call of a tool."""
    return {
        "type": "tool_use",
        "id": call.id,
        "name": call.name,
        "input": call.parse_arguments(),
    }


def get_stop_members(final_part: StreamEnd) -> dict[str, Any]:
    """Return why the answer ended."""
    if final_part.reason == "stop" and final_part.stop_sequence is not None:
        return {"stop_reason": "stop_sequence", "stop_sequence": final_part.stop_sequence}
    return {"stop_reason": STOP_REASONS[final_part.reason], "stop_sequence": None}


def format_usage(usage: Usage | None) -> dict[str, Any]:
    """Return the token counts under Anthropic's names; zeros if the provider gave none.

    Here `input_tokens` does not include what was read from a cache or written to it.
    """
    if usage is None:
        usage = Usage(input=0, output=0)
    cached_tokens = (usage.cache_read or 0) + (usage.cache_write or 0)
    return {
        "input_tokens": max(0, usage.input - cached_tokens),
        "cache_creation_input_tokens": usage.cache_write or 0,
        "cache_read_input_tokens": usage.cache_read or 0,
        "output_tokens": usage.output,
    }


def format_event(type: str, **members: Any) -> bytes:
    """Return an event of a stream: its name, and one line of JSON."""
    data = json.dumps({"type": type} | members, ensure_ascii=False, separators=(",", ":"))
    return f"event: {type}\ndata: ".encode() + data.encode() + b"\n\n"

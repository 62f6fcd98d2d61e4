"""Format answers as Anthropic does: a whole message, or the events of a streamed one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from chatcore.contrib.compat.messages.input_messages import OWN_SIGNATURE
from chatcore.contrib.compat.sealed_data import seal
from chatcore.providers.anthropic import order_blocks
from chatcore.providers.base import StreamEnd, ToolCall, Usage
from chatcore.providers.provider_data import list_thoughts, needs_seal, select_order

Block = dict[str, Any]
STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "refusal",
    # Clients know no word for an end that nobody knows; they know that such an answer is cut.
    "unknown": "max_tokens",
}
PING_EVENT = b'event: ping\ndata: {"type": "ping"}\n\n'


@dataclass(frozen=True, kw_only=True)
class MessageEnvelope:
    """The members that a message has from its first event on."""

    model: str
    id: str = field(default_factory=lambda: f"msg_{uuid4().hex}")

    def format_message(
        self, content: list[Block], usage: Mapping[str, object], **members: object
    ) -> dict[str, object]:
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


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """A block that stands for what was said so far, and what its model read and wrote.

    `headers` lead the owner to the session and the run, if they are stored.
    """

    block: Block
    usage: dict[str, object]
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """What the block says."""
        return str(self.block["content"])


def add_iterations(usage: dict[str, object], compaction: Compaction | None) -> dict[str, object]:
    """Return the token counts of an answer, with those of the compaction before it, if any."""
    if compaction is None:
        return usage
    return usage | {"iterations": [compaction.usage, {"type": "message"} | usage]}


def format_compaction_message(
    envelope: MessageEnvelope, compaction: Compaction
) -> dict[str, object]:
    """Return the message that is a compaction alone."""
    return envelope.format_message(
        [compaction.block],
        format_usage(None) | {"iterations": [compaction.usage]},
        stop_reason="compaction",
        context_management={"applied_edits": []},
    )


def format_compaction_events(envelope: MessageEnvelope, compaction: Compaction) -> bytes:
    """Return all events of the message that is a compaction alone."""
    message = format_compaction_message(envelope, compaction)
    start = message | {"content": [], "stop_reason": None}
    events = [format_event("message_start", message=start), *write_compaction(compaction)]
    delta = {"stop_reason": "compaction", "stop_sequence": None}
    events.append(format_event("message_delta", delta=delta, usage=message["usage"]))
    events.append(format_event("message_stop"))
    return b"".join(events)


def write_compaction(compaction: Compaction) -> list[bytes]:
    """Return the events of the block, which is the first one of its message."""
    block = compaction.block
    parts = {name: block[name] for name in ("content", "encrypted_content")}
    delta = {"type": "compaction_delta"} | parts
    return [
        format_event("content_block_start", index=0, content_block=block | {"content": None}),
        format_event("content_block_delta", index=0, delta=delta),
        format_event("content_block_stop", index=0),
    ]


def build_content(text: str, reasoning: str, final_part: StreamEnd) -> list[Block]:
    """Return the blocks of a whole answer, in the order in which they came."""
    thoughts = list_thoughts(final_part.provider_data)
    if not thoughts and reasoning:
        thoughts = [build_thought(reasoning)]
    calls = [build_call(call) for call in final_part.tool_calls]
    blocks = order_blocks(text, thoughts, calls, select_order(final_part.provider_data))
    seals = build_seals(final_part)
    place = next((n for n, each in enumerate(blocks) if each["type"] == "tool_use"), len(blocks))
    return [*blocks[:place], *seals, *blocks[place:]]


def build_seals(final_part: StreamEnd) -> list[Block]:
    """Return the block for what else the provider wants back, which stands before the calls.

    That is all that is no signed thought, as reasoning and signatures of OpenAI's protocol. Clients
    send such a block back unchanged, as they do with Anthropic's own.
    """
    data = final_part.provider_data
    return [{"type": "redacted_thinking", "data": seal(data)}] if needs_seal(data) else []


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


def get_stop_members(final_part: StreamEnd) -> dict[str, object]:
    """Return why the answer ended."""
    if final_part.reason == "stop" and final_part.stop_sequence is not None:
        return {"stop_reason": "stop_sequence", "stop_sequence": final_part.stop_sequence}
    stop_reason = STOP_REASONS[final_part.reason]
    if final_part.word == "model_context_window_exceeded":
        stop_reason = final_part.word
    return {"stop_reason": stop_reason, "stop_sequence": None}


def format_usage(usage: Usage | None) -> dict[str, object]:
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


def format_event(type: str, **members: object) -> bytes:
    """Return an event of a stream: its name, and one line of JSON."""
    data = json.dumps({"type": type} | members, ensure_ascii=False, separators=(",", ":"))
    return f"event: {type}\ndata: ".encode() + data.encode() + b"\n\n"

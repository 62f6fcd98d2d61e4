"""Translate chatcore's messages, tools and stored estimates into the core's terms."""

import json
from collections.abc import Sequence

from chatcore.providers.base import ChatMessage, Tool
from compaction.backends.base import STORED_CHARS_PER_TOKEN
from compaction.core.transcript import TranscriptCall, TranscriptEntry


def serialize_tools(tools: Sequence[Tool]) -> str:
    """Return about what a model is sent to describe the tools; only its length matters."""
    return "".join(f"{tool.name}{tool.description}{json.dumps(tool.parameters)}" for tool in tools)


def estimate_stored_tokens(characters: int) -> int:
    """Return the tokens that the host stores as the estimate for a text of this length."""
    return max(1, characters // STORED_CHARS_PER_TOKEN) if characters else 0


def to_entry(
    message: ChatMessage, seq: int, *, pinned: bool = False, original: str | None = None
) -> TranscriptEntry:
    """Return a message as the core has it.

    `original` is its stored text, if it is sent in another form.
    """
    calls = tuple(
        TranscriptCall(id=call.id, name=call.name, arguments=call.arguments)
        for call in message.tool_calls
    )
    return TranscriptEntry(
        seq=seq,
        role=message.role,
        content=message.content,
        tokens=message.token_estimate,
        calls=calls,
        call_id=message.tool_call_id,
        tool_name=message.tool_name,
        is_error=message.is_error,
        pinned=pinned,
        images=len(message.images),
        original=original,
    )

"""Chatcore's words in compaction's: messages as entries, tools and stored estimates as the core counts them."""

import json
from collections.abc import Sequence

from chatcore.providers.base import ChatMessage, Tool
from compaction.backends.base import STORED_CHARS_PER_TOKEN
from compaction.core.transcript import TranscriptCall, TranscriptEntry


def serialize_tools(tools: Sequence[Tool]) -> str:
    """What a model is told of the tools."""
    return "".join(f"{tool.name}{tool.description}{json.dumps(tool.parameters)}" for tool in tools)


def estimate_stored_tokens(characters: int) -> int:
    """As many as the host's stored estimates count."""
    return max(1, characters // STORED_CHARS_PER_TOKEN) if characters else 0


def to_entry(
    message: ChatMessage, seq: int, *, pinned: bool = False, original: str | None = None
) -> TranscriptEntry:
    """A message as the core has it; `original`: its stored text, where it is shown in another form."""
    return TranscriptEntry(
        seq=seq,
        role=message.role,
        content=message.content,
        tokens=message.token_estimate,
        calls=tuple(
            TranscriptCall(id=call.id, name=call.name, arguments=call.arguments)
            for call in message.tool_calls
        ),
        call_id=message.tool_call_id,
        tool_name=message.tool_name,
        is_error=message.is_error,
        pinned=pinned,
        images=len(message.images),
        original=original,
    )

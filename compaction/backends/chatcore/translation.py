"""Chatcore's words in compaction's: messages as entries, tools and stored estimates as the core counts them."""

import json
from collections.abc import Sequence

from chatcore.providers.base import ChatMessage, Tool
from compaction.backends.base import STORED_CHARS_PER_TOKEN
from compaction.core.transcript import Call, Entry


def told_of(offered: Sequence[Tool]) -> str:
    """What a model is told of the tools."""
    return "".join(
        f"{tool.name}{tool.description}{json.dumps(tool.parameters)}" for tool in offered
    )


def stored_tokens(characters: int) -> int:
    """As many as the host's stored estimates count."""
    return max(1, characters // STORED_CHARS_PER_TOKEN) if characters else 0


def entry_of(
    message: ChatMessage, seq: int, *, pinned: bool = False, original: str | None = None
) -> Entry:
    """A message as the core has it; `original`: its stored text, where it is shown in another form."""
    return Entry(
        seq=seq,
        role=message.role,
        content=message.content,
        tokens=message.token_estimate,
        calls=tuple(
            Call(id=call.id, name=call.name, arguments=call.arguments)
            for call in message.tool_calls
        ),
        call_id=message.tool_call_id,
        tool_name=message.tool_name,
        is_error=message.is_error,
        pinned=pinned,
        images=len(message.images),
        original=original,
    )

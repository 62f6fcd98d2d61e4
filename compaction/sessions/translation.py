"""Translate stored messages, tools and estimates into the core's terms."""

from collections.abc import Sequence

from chatcore.context.live_messages import LiveMessage
from chatcore.providers.base import ChatMessage, Tool, ToolCall
from compaction.core.transcript import TranscriptCall, TranscriptEntry


def serialize_tools(tools: Sequence[Tool]) -> str:
    """Return about what a model is sent to describe the tools; only its length matters."""
    return "".join([tool.text for tool in tools])


def to_entry(
    message: ChatMessage | LiveMessage,
    seq: int,
    *,
    images: int = 0,
    original: str | None = None,
    first_sent: str | None = None,
) -> TranscriptEntry:
    """Return a message as the core has it.

    `images` is how many it is sent with. `original` is its stored text, if it is sent in another
    form. `first_sent` is what its first request held, if that differs.
    """
    return TranscriptEntry(
        seq=seq,
        role=message.role,
        content=message.content,
        tokens=message.token_estimate,
        calls=_to_calls(message.tool_calls),
        call_id=message.tool_call_id,
        tool_name=message.tool_name,
        is_error=message.is_error,
        pinned=message.pinned,
        images=images,
        original=original,
        first_sent=first_sent,
    )


def to_stored_entry(message: LiveMessage) -> TranscriptEntry:
    """Return a stored message without files as the core has it."""
    return to_entry(message, message.seq, original=message.original_text)


def _to_calls(tool_calls: Sequence[ToolCall]) -> tuple[TranscriptCall, ...]:
    if not tool_calls:
        return ()
    return tuple(
        TranscriptCall(id=call.id, name=call.name, arguments=call.arguments) for call in tool_calls
    )

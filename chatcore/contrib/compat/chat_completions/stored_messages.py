"""Stored messages in the form in which this API showed them to its client."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chatcore.models import Message
from chatcore.providers.base import ToolCall, Usage

MESSAGE_COLUMNS = (
    "pk",
    "seq",
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "status",
    "original_chars",
    "turn_id",
    "turn__tools",
)


@dataclass(frozen=True, kw_only=True)
class StoredMessage:
    """A stored message in the form in which this API showed it to the client.

    It may join several rows; `pk` is then the last one.
    """

    pk: int
    seq: int
    role: str
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool_name: str = ""
    is_interrupted: bool = False
    is_truncated: bool = False


def build_stored_messages(rows: Iterable[Mapping[str, Any]]) -> list[StoredMessage]:
    """Return stored rows in the form in which the client received them.

    Built-in tools run on the server. Clients never see their calls and results, and the texts
    around them are one answer.
    """
    stored_messages: list[StoredMessage] = []
    pending_text = ""
    for row in rows:
        if row["role"] == Message.Role.TOOL and not _is_client_tool(row, row["tool_name"]):
            continue
        calls = tuple(
            ToolCall(**call) for call in row["tool_calls"] if _is_client_tool(row, call["name"])
        )
        content = row["content"]
        if row["role"] == Message.Role.ASSISTANT:
            content = "\n\n".join(text for text in (pending_text, content) if text)
        if row["tool_calls"] and not calls:
            pending_text = content
        else:
            pending_text = ""
            stored_messages.append(_build_stored_message(row, content, calls))
    return stored_messages


def read_usage(message: Message) -> Usage | None:
    """Return the tokens of the call that wrote a stored message; None if nobody counted them."""
    if message.token_count_input is None:
        return None
    return Usage(
        input=message.token_count_input,
        output=message.token_count_output or 0,
        cache_read=message.token_count_cache_read,
        cache_write=message.token_count_cache_write,
    )


def _is_client_tool(row: Mapping[str, Any], tool_name: str) -> bool:
    """Return True if the client knows this tool of a row: its own, or any of an imported row."""
    if row["turn_id"] is None:
        return True
    return any(tool["name"] == tool_name for tool in row["turn__tools"])


def _build_stored_message(
    row: Mapping[str, Any], content: str, calls: tuple[ToolCall, ...]
) -> StoredMessage:
    return StoredMessage(
        pk=row["pk"],
        seq=row["seq"],
        role=row["role"],
        content=content,
        calls=calls,
        call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        is_interrupted=row["status"] == Message.Status.INTERRUPTED,
        is_truncated=row["original_chars"] is not None,
    )

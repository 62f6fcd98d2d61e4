"""Leave out old results of tools and old thoughts of a request, as its client asks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chatcore.faces.messages.context_edits import (
    CLEAR_THINKING,
    CLEAR_TOOLS,
    ClearToolsEdit,
    ContextEdits,
)
from chatcore.providers.base import ChatMessage, Request, ToolCall

CLEARED_RESULT = "[Old tool result content cleared]"


@dataclass(frozen=True, kw_only=True)
class ClearedRequest:
    """A request after its edits, and what the answer tells of them.

    `original_tokens` is None where no edit had to be measured.
    """

    request: Request
    applied_edits: list[dict[str, Any]] = field(default_factory=list)
    original_tokens: int | None = None


def clear_request(
    request: Request, edits: ContextEdits, estimate: Callable[[Request], int]
) -> ClearedRequest:
    """Return the request after its edits. `estimate` counts the tokens of a request."""
    if edits.clear_tools is None and edits.kept_thinking_turns is None:
        return ClearedRequest(request=request)
    original_tokens = tokens = estimate(request)
    applied_edits = []
    if edits.kept_thinking_turns is not None:
        messages, count = _clear_thoughts(request.messages, edits.kept_thinking_turns)
        if count:
            request = replace(request, messages=messages)
            cleared_tokens, tokens = tokens - estimate(request), estimate(request)
            applied_edits.append(
                {
                    "type": CLEAR_THINKING,
                    "cleared_thinking_turns": count,
                    "cleared_input_tokens": max(0, cleared_tokens),
                }
            )
    if edits.clear_tools:
        cleared_request, count = _clear_tools(request, edits.clear_tools, tokens)
        cleared_tokens = tokens - estimate(cleared_request) if count else 0
        if count and cleared_tokens >= edits.clear_tools.clear_at_least:
            request = cleared_request
            applied_edits.append(
                {
                    "type": CLEAR_TOOLS,
                    "cleared_tool_uses": count,
                    "cleared_input_tokens": max(0, cleared_tokens),
                }
            )
    return ClearedRequest(
        request=request, applied_edits=applied_edits, original_tokens=original_tokens
    )


def _clear_tools(request: Request, edit: ClearToolsEdit, tokens: int) -> tuple[Request, int]:
    """Return the request with old results replaced, and the number of uses that were cleared."""
    calls = [call for message in request.messages for call in message.tool_calls]
    size = tokens if edit.trigger_kind == "input_tokens" else len(calls)
    if size <= edit.trigger:
        return request, 0
    old_calls = calls[: max(0, len(calls) - edit.keep)]
    cleared_ids = {call.id for call in old_calls if call.name not in edit.excluded_tools}
    messages = [_clear_message(message, cleared_ids, edit) for message in request.messages]
    count = sum(
        before is not after
        for before, after in zip(request.messages, messages, strict=True)
        if before.role == "tool"
    )
    return replace(request, messages=messages), count


def _clear_message(
    message: ChatMessage, cleared_ids: set[str], edit: ClearToolsEdit
) -> ChatMessage:
    if message.role == "tool" and message.tool_call_id in cleared_ids:
        if message.content == CLEARED_RESULT:
            return message
        return replace(message, content=CLEARED_RESULT, images=(), files=(), token_estimate=0)
    if message.tool_calls and (edit.cleared_inputs is None or edit.cleared_inputs):
        calls = tuple(_clear_input(call, cleared_ids, edit) for call in message.tool_calls)
        return replace(message, tool_calls=calls, token_estimate=0)
    return message


def _clear_input(call: ToolCall, cleared_ids: set[str], edit: ClearToolsEdit) -> ToolCall:
    is_chosen = edit.cleared_inputs is None or call.name in edit.cleared_inputs
    return replace(call, arguments="{}") if is_chosen and call.id in cleared_ids else call


def _clear_thoughts(
    messages: Sequence[ChatMessage], kept_turns: int
) -> tuple[list[ChatMessage], int]:
    """Return the messages with thoughts in the newest turns only, and how many lost theirs."""
    indexes = [index for index, message in enumerate(messages) if _has_thoughts(message)]
    old_indexes = set(indexes[: max(0, len(indexes) - kept_turns)])
    cleared_messages = [
        replace(message, provider_data=_drop_thoughts(message)) if index in old_indexes else message
        for index, message in enumerate(messages)
    ]
    return cleared_messages, len(old_indexes)


def _has_thoughts(message: ChatMessage) -> bool:
    return "anthropic" in message.provider_data


def _drop_thoughts(message: ChatMessage) -> dict[str, Any]:
    return {key: value for key, value in message.provider_data.items() if key != "anthropic"}

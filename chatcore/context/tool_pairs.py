"""Pair tool calls with their results, as both provider protocols require it."""

from collections.abc import Collection, Iterator, Sequence

from chatcore.providers.base import ChatMessage, ToolCall
from chatcore.providers.normal_form import list_unanswered_calls, match_results

RESULT_INTERRUPTED = "[The call was interrupted; there is no result.]"
RESULT_COMPACTED = "[Tool result unavailable - conversation was compacted]"
CALL_COMPACTED = "[Tool call for {tool} - conversation was compacted]"


def pair_tool_calls(
    messages: Sequence[ChatMessage],
    *,
    boundary_seq: int = 0,
    hidden_call_ids: Collection[str] = (),
    repairable_seqs: Collection[int] = (),
) -> list[ChatMessage]:
    """Return the messages with every result directly behind its call (docs/origins.md, NeuroLink).

    A missing result is replaced by a note: the call lies before the boundary, or its id is one of
    `hidden_call_ids`, so compaction removed the result; otherwise the call was interrupted. For a
    result without a call, one is made up if its number is one of `repairable_seqs`; otherwise the
    result is left out.
    """
    results, lone_indexes = match_results(messages)
    request_messages: list[ChatMessage] = []
    for index, message in enumerate(messages):
        if message.role != "tool":
            request_messages.append(message)
            if message.tool_calls:
                call_results = results.get(index, [])
                is_compacted = (message.seq or 0) < boundary_seq
                request_messages += call_results
                request_messages += _fill_missing_results(
                    message,
                    call_results,
                    hidden_call_ids=None if is_compacted else hidden_call_ids,
                )
        elif index in lone_indexes and message.seq in repairable_seqs:
            request_messages += [_build_missing_call(message), message]
    return request_messages


def _fill_missing_results(
    message: ChatMessage, results: Sequence[ChatMessage], *, hidden_call_ids: Collection[str] | None
) -> Iterator[ChatMessage]:
    """Yield a note for each call without a result; with None, compaction hides all results."""
    for call in list_unanswered_calls(message, results):
        is_compacted = hidden_call_ids is None or call.id in hidden_call_ids
        yield ChatMessage(
            role="tool",
            content=RESULT_COMPACTED if is_compacted else RESULT_INTERRUPTED,
            is_error=not is_compacted,
            tool_call_id=call.id,
            tool_name=call.name,
        )


def _build_missing_call(result: ChatMessage) -> ChatMessage:
    name = result.tool_name or "tool"
    call = ToolCall(id=result.tool_call_id, name=name, arguments="{}")
    return ChatMessage(
        role="assistant", content=CALL_COMPACTED.format(tool=name), tool_calls=(call,)
    )

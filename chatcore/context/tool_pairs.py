"""Tool calls and their results as both protocols want them: every call followed by all of its results, no result without its call."""

from collections.abc import Collection, Iterator, Sequence

from chatcore.providers.base import ChatMessage, ToolCall

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
    """The messages with every result right behind its call, and words of ours in place of what is missing (NeuroLink, Tool Pair Repair).

    A result belongs to the newest call of its id before it: some models begin to count their calls anew in each answer. A call before
    the boundary, or whose result is among the `hidden` ids, lost it to compaction; any other was interrupted. A result without its call
    is given one when its seq is among the `rescued`; else it is left out.
    """
    results, lone_indexes = _match_results(messages)
    request_messages: list[ChatMessage] = []
    for index, message in enumerate(messages):
        if message.role != "tool":
            request_messages += [message, *results.get(index, {}).values()]
            is_compacted = (message.seq or 0) < boundary_seq
            request_messages += _fill_missing_results(
                message,
                results.get(index, {}),
                hidden_call_ids=None if is_compacted else hidden_call_ids,
            )
        elif index in lone_indexes and message.seq in repairable_seqs:
            request_messages += [_build_missing_call(message), message]
    return request_messages


def _match_results(
    messages: Sequence[ChatMessage],
) -> tuple[dict[int, dict[str, ChatMessage]], set[int]]:
    """The results by the place of their call and its id; and the places of those that have none."""
    results: dict[int, dict[str, ChatMessage]] = {}
    call_indexes: dict[str, int] = {}
    lone_indexes: set[int] = set()
    for index, message in enumerate(messages):
        if message.role == "tool" and message.tool_call_id in call_indexes:
            results.setdefault(call_indexes.pop(message.tool_call_id), {})[message.tool_call_id] = (
                message
            )
        elif message.role == "tool":
            lone_indexes.add(index)
        call_indexes |= {call.id: index for call in message.tool_calls}
    return results, lone_indexes


def _fill_missing_results(
    message: ChatMessage, results: Collection[str], *, hidden_call_ids: Collection[str] | None
) -> Iterator[ChatMessage]:
    """Words in place of results. `hidden`: the ids of those that compaction hides; None: all of them."""
    for call in message.tool_calls:
        is_compacted = hidden_call_ids is None or call.id in hidden_call_ids
        if call.id not in results:
            content = RESULT_COMPACTED if is_compacted else RESULT_INTERRUPTED
            yield ChatMessage(
                role="tool",
                content=content,
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

"""Tool calls and their results as both protocols want them: every call followed by all of its results, no result without its call."""

from collections.abc import Collection, Iterator, Sequence

from chatcore.providers.base import ChatMessage, ToolCall

INTERRUPTED = "[The call was interrupted; there is no result.]"
RESULT_COMPACTED = "[Tool result unavailable - conversation was compacted]"
CALL_COMPACTED = "[Tool call for {tool} - conversation was compacted]"


def paired(
    messages: Sequence[ChatMessage],
    *,
    boundary_seq: int = 0,
    hidden: Collection[str] = (),
    rescued: Collection[int] = (),
) -> list[ChatMessage]:
    """The messages with every result right behind its call, and words of ours in place of what is missing (NeuroLink, Tool Pair Repair).

    A result belongs to the newest call of its id before it: some models begin to count their calls anew in each answer. A call before
    the boundary, or whose result is among the `hidden` ids, lost it to compaction; any other was interrupted. A result without its call
    is given one when its seq is among the `rescued`; else it is left out.
    """
    results, lone = _results(messages)
    whole: list[ChatMessage] = []
    for index, message in enumerate(messages):
        if message.role != "tool":
            whole += [message, *results.get(index, {}).values()]
            compacted = (message.seq or 0) < boundary_seq
            whole += _missing(message, results.get(index, {}), hidden=None if compacted else hidden)
        elif index in lone and message.seq in rescued:
            whole += [_call_for(message), message]
    return whole


def _results(messages: Sequence[ChatMessage]) -> tuple[dict[int, dict[str, ChatMessage]], set[int]]:
    """The results by the place of their call and its id; and the places of those that have none."""
    results: dict[int, dict[str, ChatMessage]] = {}
    asked: dict[str, int] = {}
    lone: set[int] = set()
    for index, message in enumerate(messages):
        if message.role == "tool" and message.tool_call_id in asked:
            results.setdefault(asked.pop(message.tool_call_id), {})[message.tool_call_id] = message
        elif message.role == "tool":
            lone.add(index)
        asked |= {call.id: index for call in message.tool_calls}
    return results, lone


def _missing(
    message: ChatMessage, results: Collection[str], *, hidden: Collection[str] | None
) -> Iterator[ChatMessage]:
    """Words in place of results. `hidden`: the ids of those that compaction hides; None: all of them."""
    for call in message.tool_calls:
        compacted = hidden is None or call.id in hidden
        if call.id not in results:
            content = RESULT_COMPACTED if compacted else INTERRUPTED
            yield ChatMessage(
                role="tool",
                content=content,
                is_error=not compacted,
                tool_call_id=call.id,
                tool_name=call.name,
            )


def _call_for(result: ChatMessage) -> ChatMessage:
    name = result.tool_name or "tool"
    call = ToolCall(id=result.tool_call_id, name=name, arguments="{}")
    return ChatMessage(
        role="assistant", content=CALL_COMPACTED.format(tool=name), tool_calls=(call,)
    )

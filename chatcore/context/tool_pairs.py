"""Pair tool calls with their results, as both provider protocols require it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from chatcore.providers.base import ChatMessage, ToolCall

RESULT_INTERRUPTED = "[The call was interrupted; there is no result.]"
RESULT_COMPACTED = "[Tool result unavailable - conversation was compacted]"
CALL_COMPACTED = "[Tool call for {tool} - conversation was compacted]"


class PairableMessage(Protocol):
    """What decides about pairs in a message of any kind."""

    @property
    def role(self) -> str: ...
    @property
    def tool_call_id(self) -> str: ...
    @property
    def tool_calls(self) -> Sequence[ToolCall]: ...


MessageT = TypeVar("MessageT", bound=PairableMessage)


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
    result is left out. A result belongs to the newest earlier call with its id, because some models
    use the same ids again in each answer.
    """
    results, lone_indexes = _match_results(messages)
    request_messages: list[ChatMessage] = []
    for index, message in enumerate(messages):
        if message.role != "tool":
            request_messages.append(message)
            if message.tool_calls:
                call_results = results.get(index, {})
                is_compacted = (message.seq or 0) < boundary_seq
                request_messages += call_results.values()
                request_messages += _fill_missing_results(
                    message,
                    call_results,
                    hidden_call_ids=None if is_compacted else hidden_call_ids,
                )
        elif index in lone_indexes and message.seq in repairable_seqs:
            request_messages += [_build_missing_call(message), message]
    return request_messages


def mark_lone_results(messages: Iterable[MessageT]) -> Iterator[tuple[MessageT, bool]]:
    """Yield each message, and whether it is a result without a call.

    What is a call's result is decided as `pair_tool_calls` does.
    """
    open_call_ids: set[str] = set()
    for message in messages:
        is_lone = message.role == "tool" and message.tool_call_id not in open_call_ids
        yield message, is_lone
        if message.role == "tool":
            open_call_ids.discard(message.tool_call_id)
        elif message.tool_calls:
            open_call_ids.update(call.id for call in message.tool_calls)


def _match_results(
    messages: Sequence[ChatMessage],
) -> tuple[dict[int, dict[str, ChatMessage]], set[int]]:
    """Return the results by the index of their message with calls and by call id.

    The second value holds the indexes of the results that have no call.
    """
    results: dict[int, dict[str, ChatMessage]] = {}
    call_indexes: dict[str, int] = {}
    lone_indexes: set[int] = set()
    for index, (message, is_lone) in enumerate(mark_lone_results(messages)):
        if is_lone:
            lone_indexes.add(index)
        elif message.role == "tool":
            call_index = call_indexes[message.tool_call_id]
            results.setdefault(call_index, {})[message.tool_call_id] = message
        else:
            for call in message.tool_calls:
                call_indexes[call.id] = index
    return results, lone_indexes


def _fill_missing_results(
    message: ChatMessage, results: Collection[str], *, hidden_call_ids: Collection[str] | None
) -> Iterator[ChatMessage]:
    """Yield a note for each call without a result; with None, compaction hides all results."""
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

"""Find the results of tool calls among the messages of a history."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from chatcore.providers.base import ChatMessage, ToolCall


class PairableMessage(Protocol):
    """What decides about pairs in a message of any kind."""

    @property
    def role(self) -> str: ...
    @property
    def tool_call_id(self) -> str: ...
    @property
    def tool_calls(self) -> Sequence[ToolCall]: ...


MessageT = TypeVar("MessageT", bound=PairableMessage)


def mark_lone_results(messages: Iterable[MessageT]) -> Iterator[tuple[MessageT, bool]]:
    """Yield each message, and whether it is a result without a call.

    A result belongs to the newest earlier call with its id, because some models use the same ids
    again in each answer. Two calls of one answer may share an id too, and have two results then.
    """
    open_calls: dict[str, int] = {}
    for message in messages:
        is_lone = message.role == "tool" and not open_calls.get(message.tool_call_id)
        yield message, is_lone
        if message.role == "tool":
            if not is_lone:
                open_calls[message.tool_call_id] -= 1
        elif message.tool_calls:
            open_calls |= Counter(call.id for call in message.tool_calls)


def match_results(
    messages: Sequence[ChatMessage],
) -> tuple[dict[int, list[ChatMessage]], set[int]]:
    """Return the results by the index of the message with their calls.

    The second value holds the indexes of the results that have no call.
    """
    results: dict[int, list[ChatMessage]] = {}
    call_indexes: dict[str, int] = {}
    lone_indexes: set[int] = set()
    for index, (message, is_lone) in enumerate(mark_lone_results(messages)):
        if is_lone:
            lone_indexes.add(index)
        elif message.role == "tool":
            results.setdefault(call_indexes[message.tool_call_id], []).append(message)
        else:
            for call in message.tool_calls:
                call_indexes[call.id] = index
    return results, lone_indexes


def list_unanswered_calls(
    message: ChatMessage, results: Iterable[ChatMessage]
) -> Iterator[ToolCall]:
    """Yield the calls of a message for which there is no result."""
    result_counts = Counter(result.tool_call_id for result in results)
    for call in message.tool_calls:
        if result_counts[call.id]:
            result_counts[call.id] -= 1
        else:
            yield call

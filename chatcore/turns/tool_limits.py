"""How many tools the answers of a turn may call, where a client has said so."""

from dataclasses import replace
from typing import Any

from chatcore.models import Message, Turn
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import Request, StreamEnd


def limit_calls(turn: Turn, count: int | None) -> None:
    """Let the turn call so many more tools from now on; None for any number."""
    limit = None if count is None else _count_calls(turn) + count
    if limit != turn.max_tool_calls:
        turn.max_tool_calls = limit
        turn.save(update_fields=["max_tool_calls"])


def forbid_calls_over_limit(turn: Turn, request: Request) -> Request:
    """Return a request that lets the model call no tools if it has called as many as it may.

    The tools stay in the request: providers want to know those of earlier calls.
    """
    if not request.tools or _count_calls_left(turn) != 0:
        return request
    model = turn.session.model
    assert model is not None
    choice = provider_registry.translate_params(model.provider.protocol, {"tool_choice": "none"})
    return replace(request, params={**request.params, **choice})


def drop_calls_over_limit(turn: Turn, completion: StreamEnd) -> StreamEnd:
    """Return an answer without the calls that are too many.

    OpenAI ignores them as well: they are neither run nor shown to the client.
    """
    count = _count_calls_left(turn) if completion.tool_calls else None
    return keep_first_calls(completion, count)


def keep_first_calls(completion: StreamEnd, count: int | None) -> StreamEnd:
    """Return an answer with its first calls; None for all of them."""
    if count is None or len(completion.tool_calls) <= count:
        return completion
    calls = completion.tool_calls[:count]
    return replace(completion, tool_calls=calls, reason="tool_calls" if calls else "stop")


def _count_calls_left(turn: Turn) -> int | None:
    if turn.max_tool_calls is None:
        return None
    return max(0, turn.max_tool_calls - _count_calls(turn))


def _count_calls(turn: Turn) -> int:
    answers: Any = turn.messages.filter(role=Message.Role.ASSISTANT)
    return sum(len(calls) for calls in answers.values_list("tool_calls", flat=True))

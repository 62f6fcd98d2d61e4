"""What a turn waits for: results of tools that the client runs, and a person's approval."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from chatcore.events.types import (
    ApprovalRequestPayload,
    EventType,
    NewEvent,
    ToolCallPayload,
    TurnWaitingPayload,
)
from chatcore.models import Turn
from chatcore.providers.base import ToolCall
from chatcore.sessions.tool_calls import find_calling_message, find_pending_calls
from chatcore.turns import approvals, client_tools


@dataclass(frozen=True)
class OpenCalls:
    """The calls of a turn that have no result: the client's, and those that nobody has allowed."""

    client_calls: Sequence[ToolCall] = field(default=())
    undecided_calls: Sequence[ToolCall] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.client_calls or self.undecided_calls)


def split_calls(turn: Turn, calls: Sequence[ToolCall]) -> tuple[list[ToolCall], list[ToolCall]]:
    """Return the calls that the client runs, and the others."""
    client_names = client_tools.get_tool_names(turn)
    client_calls = [call for call in calls if call.name in client_names]
    return client_calls, [call for call in calls if call.name not in client_names]


def find_open_calls(turn: Turn) -> OpenCalls:
    """Return what a waiting turn still waits for."""
    message = find_calling_message(turn)
    if message is None:
        return OpenCalls()
    client_calls, own_calls = split_calls(turn, find_pending_calls(turn, message))
    return OpenCalls(client_calls, approvals.sort_calls(turn, message, own_calls).undecided_calls)


def build_waiting_event(turn: Turn, open_calls: OpenCalls) -> NewEvent:
    """Return the event that names the calls for which the turn waits."""
    payload = TurnWaitingPayload(
        turn=str(turn.pk),
        tool_calls=[_build_call_payload(call) for call in open_calls.client_calls],
    )
    if open_calls.undecided_calls:
        payload["approvals"] = build_approval_requests(turn, open_calls.undecided_calls)
    return EventType.TURN_WAITING, payload


def build_approval_requests(turn: Turn, calls: Sequence[ToolCall]) -> list[ApprovalRequestPayload]:
    """Return what a person has to know to decide about calls."""
    tools = approvals.find_tools(turn, calls) if calls else {}
    return [
        ApprovalRequestPayload(
            **_build_call_payload(call),
            server=tools[call.name].server.name,
            tool=tools[call.name].name,
        )
        for call in calls
    ]


def _build_call_payload(call: ToolCall) -> ToolCallPayload:
    return ToolCallPayload(id=call.id, name=call.name, arguments=call.arguments)

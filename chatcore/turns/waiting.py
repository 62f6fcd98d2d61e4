"""What a turn waits for: results of the client's tools, and a person's word, which is kept here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Q

from chatcore.events import log as event_log
from chatcore.events.types import (
    ApprovalDecidedPayload,
    ApprovalRequestPayload,
    EventType,
    NewEvent,
    ToolCallPayload,
    TurnWaitingPayload,
)
from chatcore.models import Message, Session, ToolApproval, Turn
from chatcore.providers.base import ToolCall
from chatcore.sessions.tool_calls import find_calling_message, find_pending_calls
from chatcore.tools.mcp import catalog
from chatcore.tools.mcp.catalog import McpTool
from chatcore.tools.registry import ToolOutcome
from chatcore.turns import client_tools

REFUSING_DECISIONS = (ToolApproval.Decision.DENY, ToolApproval.Decision.NEVER)
REFUSAL = ToolOutcome(content="The person did not allow this call.", is_error=True)


class InvalidApproval(Exception):
    """A decision about an unknown call, or another one than before; `field` is its path."""

    def __init__(self, index: int, detail: str) -> None:
        super().__init__(detail)
        self.field = f"approvals[{index}].tool_call_id"
        self.detail = detail


@dataclass(frozen=True, kw_only=True)
class Approval:
    """What a person decided about one call."""

    tool_call_id: str
    decision: str


@dataclass(frozen=True)
class SortedCalls:
    """Calls by what a person has decided: they may run, they may not, nobody has said."""

    allowed_calls: list[ToolCall] = field(default_factory=list)
    refused_calls: list[ToolCall] = field(default_factory=list)
    undecided_calls: list[ToolCall] = field(default_factory=list)


def sort_calls(turn: Turn, message: Message, calls: Sequence[ToolCall]) -> SortedCalls:
    """Sort the calls of a turn's message. What is no tool of an MCP server may always run.

    Without calls of such tools this takes no query.
    """
    sorted_calls = SortedCalls()
    tools = find_tools(turn, calls)
    decisions = _load_decisions(turn.session, message) if tools else []
    for call in calls:
        tool = tools.get(call.name)
        decision = _find_decision(decisions, message, call, tool) if tool else None
        if decision in REFUSING_DECISIONS:
            sorted_calls.refused_calls.append(call)
        elif tool is None or decision or not tool.needs_approval:
            sorted_calls.allowed_calls.append(call)
        else:
            sorted_calls.undecided_calls.append(call)
    return sorted_calls


def record_decisions(turn: Turn, approvals: Sequence[Approval]) -> None:
    """Store decisions about calls of a waiting turn whose row is locked, and announce them.

    Repeated ones are stored once. A tool that the session has lost meanwhile needs no decision:
    its call says so. Raises InvalidApproval.
    """
    message = find_calling_message(turn)
    assert message is not None  # a turn waits for nothing else
    _, calls = split_calls(turn, find_pending_calls(turn, message))
    decisions = _map_decisions(message)
    open_calls = {call.id: call for call in calls if call.id not in decisions}
    tools = find_tools(turn, calls)
    rows, events = [], []
    for index, approval in enumerate(approvals):
        call = open_calls.pop(approval.tool_call_id, None)
        if call is None:
            if decisions.get(approval.tool_call_id) != approval.decision:
                raise InvalidApproval(index, "No call that waits for an approval has this id.")
            continue
        events.append(_build_event(turn, approval))
        tool = tools.get(call.name)
        if tool is None:
            continue
        rows.append(
            ToolApproval(
                session_id=turn.session_id,
                server=tool.server,
                tool=tool.name,
                message=message,
                tool_call_id=call.id,
                decision=approval.decision,
                digest=tool.digest,
            )
        )
    ToolApproval.objects.bulk_create(rows)
    event_log.append_events(turn.session_id, *events)


def has_decisions(turn: Turn, approvals: Iterable[Approval]) -> bool:
    """Return True if exactly these decisions are stored for the turn's newest calls."""
    message = find_calling_message(turn)
    decisions = _map_decisions(message) if message else {}
    return all(decisions.get(approval.tool_call_id) == approval.decision for approval in approvals)


def find_tools(turn: Turn, calls: Sequence[ToolCall]) -> dict[str, McpTool]:
    """Return the MCP tools that the calls name, of those that may be called in the turn."""
    return catalog.find_tools(turn, [call.name for call in calls])


def list_decisions(session: Session) -> list[ToolApproval]:
    """Return what holds in the session, the newest decision on each tool first.

    A word for a tool that is another one by now holds no longer.
    """
    rows = session.tool_approvals.filter(decision__in=ToolApproval.LASTING_DECISIONS)
    newest: dict[tuple[UUID, str], ToolApproval] = {}
    for row in rows.select_related("server").order_by("-id"):
        newest.setdefault((row.server_id, row.tool), row)
    return [row for row in newest.values() if _still_holds(row, catalog.list_tools_of(row.server))]


def forget_decisions(session: Session) -> None:
    """Ask again before each tool of the session: what was decided for good holds no longer."""
    session.tool_approvals.filter(decision__in=ToolApproval.LASTING_DECISIONS).delete()


def _load_decisions(session: Session, message: Message) -> list[ToolApproval]:
    """Return what holds in the session, the newest first, and the decisions on this message."""
    lasting = Q(decision__in=ToolApproval.LASTING_DECISIONS)
    return list(session.tool_approvals.filter(lasting | Q(message=message)).order_by("-id"))


def _find_decision(
    decisions: Sequence[ToolApproval], message: Message, call: ToolCall, tool: McpTool
) -> str | None:
    """Return the decision on this call, else the newest one on its tool that lasts.

    A word is about what was shown. If the server or the tool was changed between the word and the
    call, the call is refused; a lasting word for what is another tool by now is none.
    """
    lasting = None
    for row in decisions:
        holds = _still_holds(row, [tool])
        if row.message_id == message.pk and row.tool_call_id == call.id:
            return row.decision if holds else ToolApproval.Decision.DENY
        is_of_tool = row.server_id == tool.server.pk and row.tool == tool.name
        if lasting is None and is_of_tool and row.decision in ToolApproval.LASTING_DECISIONS:
            lasting = row.decision if holds else ""
    return lasting or None


def _still_holds(row: ToolApproval, tools: Iterable[McpTool]) -> bool:
    """Return whether one of the tools is what the word was about. A refusal holds for any form."""
    if row.decision in REFUSING_DECISIONS:
        return True
    return any(tool.name == row.tool and tool.digest == row.digest for tool in tools)


def _map_decisions(message: Message) -> dict[str, str]:
    """Return the decisions about single calls of a message, by call id."""
    rows = ToolApproval.objects.filter(message=message)
    return dict(rows.values_list("tool_call_id", "decision"))


def _build_event(turn: Turn, approval: Approval) -> NewEvent:
    payload = ApprovalDecidedPayload(
        turn=str(turn.pk), id=approval.tool_call_id, decision=approval.decision
    )
    return EventType.APPROVAL_DECIDED, payload


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
    return OpenCalls(client_calls, sort_calls(turn, message, own_calls).undecided_calls)


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
    tools = find_tools(turn, calls) if calls else {}
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

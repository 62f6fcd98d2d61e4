"""Format MCP servers' tools as items: lists of them, their calls, and questions about calls."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from chatcore.contrib.compat.responses import ids
from chatcore.models import McpServer, Message, ToolApproval, Turn
from chatcore.providers.base import ChatMessage, ToolCall
from chatcore.tools.mcp import catalog
from chatcore.turns import client_tools, waiting

Item = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class ServerCall:
    """A call of an MCP server's tool, stored or not. `index` is its place in its message.

    `is_asked` says that a person had to allow it, so that it runs in a later response.
    """

    stem: str
    index: int
    call: ToolCall
    label: str
    tool: str
    is_asked: bool = False
    output: str | None = None  # None until there is a result
    is_error: bool = False
    is_over: bool = False  # it will have no result

    def add_result(self, result: ChatMessage | None) -> "ServerCall":
        """Return the call with its result, if there is one."""
        if result is None:
            return self
        return replace(self, output=result.content, is_error=result.is_error)


def build_list_item(server: McpServer) -> Item:
    """Return the item of a server's tools, or of why it could not be asked for them."""
    item: Item = {
        "id": ids.build_server_item_id(server.pk),
        "type": "mcp_list_tools",
        "server_label": server.name,
        "tools": [
            {
                "name": tool["name"],
                "description": tool["description"],
                "input_schema": tool["parameters"],
                "annotations": None,
            }
            for tool in server.tools
        ],
    }
    if server.error:
        item["error"] = server.error
    return item


def build_call_item(call: ServerCall) -> Item:
    """Return the item of a call: with its output, with its error, or before both."""
    error = None
    if call.is_error:
        content = [{"type": "text", "text": call.output}]
        error = {"type": "mcp_tool_execution_error", "content": content}
    status = "incomplete" if call.is_over else "in_progress"
    if call.output is not None:
        status = "failed" if call.is_error else "completed"
    return {
        "id": ids.build_server_call_id(call.stem, call.index),
        "type": "mcp_call",
        "status": status,
        "approval_request_id": (
            ids.build_approval_id(call.stem, call.index) if call.is_asked else None
        ),
        "server_label": call.label,
        "name": call.tool,
        "arguments": call.call.arguments,
        "output": None if call.is_error else call.output,
        "error": error,
    }


def build_request_item(call: ServerCall) -> Item:
    """Return the item that asks whether a call may be made."""
    return {
        "id": ids.build_approval_id(call.stem, call.index),
        "type": "mcp_approval_request",
        "server_label": call.label,
        "name": call.tool,
        "arguments": call.call.arguments,
    }


def build_items(calls: Iterable[ServerCall], *, is_whole: bool = False) -> list[Item]:
    """Return the items of a message's calls: those that ran, and the questions about others.

    With `is_whole` the calls that ran after a question are there too: they are items of a later
    response, and of the same conversation.
    """
    items = []
    for call in calls:
        if call.is_asked:
            items.append(build_request_item(call))
        if not call.is_asked or (is_whole and call.output is not None):
            items.append(build_call_item(call))
    return items


def load_server_calls(message: Message) -> list[ServerCall]:
    """Return the calls of a stored message that MCP servers answer. Others take no query."""
    turn = message.turn
    if turn is None:
        return []
    client_names = client_tools.get_tool_names(turn)
    calls = [
        (index, ToolCall(**call))
        for index, call in enumerate(message.tool_calls)
        if catalog.is_tool_name(call["name"]) and call["name"] not in client_names
    ]
    if not calls:
        return []
    results = _load_results(turn, message, [call for _, call in calls])
    open_calls = [call for _, call in calls if call.id not in results]
    tools = waiting.find_tools(turn, [call for _, call in calls])
    asked_ids = {
        *ToolApproval.objects.filter(message=message).values_list("tool_call_id", flat=True)
    }
    if open_calls:
        undecided_calls = waiting.sort_calls(turn, message, open_calls).undecided_calls
        asked_ids |= {call.id for call in undecided_calls}
    stem = ids.build_stem(message.session_id, message.seq)
    server_calls = []
    for index, call in calls:
        result, tool = results.get(call.id), tools.get(call.name)
        label, tool_name = catalog.split_tool_name(call.name)
        server_calls.append(
            ServerCall(
                stem=stem,
                index=index,
                call=call,
                label=tool.server.name if tool else label,
                tool=tool.name if tool else tool_name,
                is_asked=call.id in asked_ids,
                output=result.content if result else None,
                is_error=bool(result and result.is_error),
                is_over=turn.status not in Turn.OPEN_STATUSES,
            )
        )
    return server_calls


def find_asked_message(turn: Turn, seq: int) -> Message | None:
    """Return the turn's message up to a number whose calls ran behind it, if there were any."""
    message = (
        turn.messages.filter(role=Message.Role.ASSISTANT, seq__lte=seq)
        .exclude(tool_calls=[])
        .order_by("seq")
        .last()
    )
    if message is not None:
        message.turn = turn
    return message


def load_asked_calls(turn: Turn, seq: int) -> list[ServerCall]:
    """Return the calls about which a person was asked before message number `seq`."""
    message = find_asked_message(turn, seq)
    return [call for call in load_server_calls(message) if call.is_asked] if message else []


def _load_results(turn: Turn, message: Message, calls: Sequence[ToolCall]) -> dict[str, Message]:
    """Return the results of calls by their ids: the first behind the message, as ids repeat."""
    rows = turn.messages.filter(
        role=Message.Role.TOOL,
        seq__gt=message.seq,
        tool_call_id__in=[call.id for call in calls],
    )
    return {row.tool_call_id: row for row in rows.order_by("-seq")}

"""MCP servers of an answer that is not stored: asked, called, and forgotten with it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from chatcore.accounts.rights import EVERYTHING, Kind, list_allowed
from chatcore.base.truncation import clean_text, cut_tool_result
from chatcore.contrib.compat.responses import ids
from chatcore.contrib.compat.responses.input_items import InputApproval
from chatcore.contrib.compat.responses.mcp import items as mcp_items
from chatcore.contrib.compat.responses.mcp.items import Item, ServerCall
from chatcore.models import McpServer
from chatcore.providers.base import ChatMessage, Tool, ToolCall
from chatcore.tools.base import ToolError
from chatcore.tools.mcp import catalog
from chatcore.tools.mcp.catalog import McpTool
from chatcore.tools.mcp.refresh import ask_server
from chatcore.tools.mcp.turn_servers import RequestServer
from chatcore.tools.registry import call_mcp_tool
from chatcore.turns.waiting import REFUSAL


class StatelessTools:
    """The tools of the servers of one request. It asks the servers when it is created.

    `chosen` are tools of other servers, which the user may use.
    """

    def __init__(
        self, user_id: Any, servers: Sequence[RequestServer], chosen: Sequence[McpTool] = ()
    ) -> None:
        self.servers = [McpServer(owner_id=user_id) for _ in servers]
        for row, server in zip(self.servers, servers, strict=True):
            server.write_to(row)
        if self.servers:
            with ThreadPoolExecutor(len(self.servers)) as executor:
                list(executor.map(ask_server, self.servers))
        tools = [tool for server in self.servers for tool in catalog.list_tools_of(server)]
        names = list_allowed(user_id, Kind.TOOL) if tools else EVERYTHING
        tools = [*chosen, *(tool for tool in tools if tool.name_in_rights in names)]
        self._tools = {tool.definition.name: tool for tool in tools}

    @property
    def definitions(self) -> list[Tool]:
        """The tools that the model may call."""
        return [tool.definition for tool in self._tools.values()]

    def build_list_items(self) -> list[Item]:
        """Return the items that say what the servers offer."""
        return [mcp_items.build_list_item(server) for server in self.servers]

    def build_calls(self, stem: str, calls: Sequence[ToolCall]) -> list[ServerCall]:
        """Return those calls of an answer that the servers answer."""
        return [
            ServerCall(
                stem=stem,
                index=index,
                call=call,
                label=self._tools[call.name].server.name,
                tool=self._tools[call.name].name,
                is_asked=self._tools[call.name].needs_approval,
            )
            for index, call in enumerate(calls)
            if call.name in self._tools
        ]

    def run_call(self, call: ToolCall) -> ChatMessage:
        """Run a call, and return its result, cut like a stored one."""
        is_error = False
        try:
            tool = self._tools.get(call.name)
            if tool is None:
                raise ToolError(f"There is no tool called {call.name!r}.")
            text = call_mcp_tool(tool, call)
        except ToolError as error:
            text, is_error = str(error), True
        content, _ = cut_tool_result(clean_text(text))
        return ChatMessage(role="tool", content=content, tool_call_id=call.id, is_error=is_error)

    def run_allowed_calls(
        self, messages: Sequence[ChatMessage], words: Sequence[InputApproval]
    ) -> tuple[list[Item], list[ChatMessage]]:
        """Run the calls that the input allows; return their items, and the messages with results.

        A call that the input refuses has the refusal as its result.
        """
        words_by_id = {word.request_id: word for word in words}
        items: list[Item] = []
        new_messages: list[ChatMessage] = []
        for message in messages:
            new_messages.append(message)
            for call in message.tool_calls:
                word = words_by_id.get(call.id)
                if word is None:
                    continue
                result = self.run_call(call) if word.is_allowed else _build_refusal(call)
                new_messages.append(result)
                items.append(self._build_allowed_item(call, result))
        return items, new_messages

    def _build_allowed_item(self, call: ToolCall, result: ChatMessage) -> Item:
        label, name = catalog.split_tool_name(call.name)
        tool = self._tools.get(call.name)
        server_call = ServerCall(
            stem=ids.build_random_stem(),
            index=0,
            call=call,
            label=tool.server.name if tool else label,
            tool=tool.name if tool else name,
            output=result.content,
            is_error=result.is_error,
        )
        return mcp_items.build_call_item(server_call) | {"approval_request_id": call.id}


def _build_refusal(call: ToolCall) -> ChatMessage:
    return ChatMessage(
        role="tool", content=REFUSAL.content, tool_call_id=call.id, is_error=REFUSAL.is_error
    )

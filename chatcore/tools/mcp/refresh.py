"""Ask MCP servers which tools they offer, and store the list.

A list changes only when somebody asks for it. So a server cannot change under a conversation what
its person has chosen and allowed.
"""

import json
from typing import TYPE_CHECKING

from django.utils import timezone

from chatcore.base.truncation import clean_json, clean_text
from chatcore.models import McpServer
from chatcore.models.message import MAX_TOOL_NAME
from chatcore.tools.base import ToolError
from chatcore.tools.mcp import connection, rules

if TYPE_CHECKING:
    from mcp import types

MAX_TOOLS = 128
MAX_DESCRIPTION_CHARS = 4_000
MAX_SCHEMA_CHARS = 30_000


def refresh_server(server: McpServer) -> bool:
    """Store the server's tools, or why it could not be asked; return whether it could.

    The tools of the last time stay if it could not.
    """
    was_there = ask_server(server)
    names = ("tools", "error", "refreshed_at") if was_there else ("error",)
    # It may have been deleted while it was asked, and stays so.
    values = {name: getattr(server, name) for name in names}
    McpServer.objects.filter(pk=server.pk).update(**values)
    return was_there


def ask_server(server: McpServer) -> bool:
    """Do the same without storing it."""
    try:
        tools = [_describe_tool(tool, server.rules) for tool in connection.list_tools(server)]
    except ToolError as error:
        server.error = clean_text(str(error))
        return False
    server.tools = [tool for tool in tools if tool is not None][:MAX_TOOLS]
    server.error = ""
    server.refreshed_at = timezone.now()
    return True


def _describe_tool(tool: "types.Tool", tool_rules: rules.Rules) -> dict[str, object] | None:
    """Return a tool in the form in which it is stored; None if it is not to be offered.

    That is one that is too large, or that the rules of a request leave out.
    """
    is_read_only = bool(tool.annotations and tool.annotations.read_only_hint)
    if not rules.allows(tool_rules, tool.name, is_read_only=is_read_only):
        return None
    parameters = {"type": "object", "properties": {}} | clean_json(tool.input_schema)
    parameters.pop("$schema", None)
    if len(tool.name) > MAX_TOOL_NAME or len(json.dumps(parameters)) > MAX_SCHEMA_CHARS:
        return None
    texts = (tool_rules.get("description"), tool.description)
    approval = rules.find_approval(tool_rules, tool.name, is_read_only=is_read_only)
    return {
        "name": clean_text(tool.name),
        "description": clean_text("\n\n".join(text for text in texts if text))[
            :MAX_DESCRIPTION_CHARS
        ],
        "parameters": parameters,
        **({"approval": approval} if approval else {}),
    }

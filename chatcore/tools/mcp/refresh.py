"""Ask MCP servers which tools they offer, and store the list.

A list changes only when somebody asks for it. So a server cannot change under a conversation what
its person has chosen and allowed.
"""

import json
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from chatcore.models import McpServer
from chatcore.models.message import MAX_TOOL_NAME
from chatcore.sessions.truncation import clean_json, clean_text
from chatcore.tools.base import ToolError
from chatcore.tools.mcp import connection

if TYPE_CHECKING:
    from mcp import types

MAX_TOOLS = 128
MAX_DESCRIPTION_CHARS = 4_000
MAX_SCHEMA_CHARS = 30_000


def refresh_server(server: McpServer) -> bool:
    """Store the server's tools, or why it could not be asked; return whether it could.

    The tools of the last time stay if it could not.
    """
    try:
        tools = [_describe_tool(tool) for tool in connection.list_tools(server)]
    except ToolError as error:
        server.error = clean_text(str(error))
        server.save(update_fields=["error"])
        return False
    server.tools = [tool for tool in tools if tool is not None][:MAX_TOOLS]
    server.error = ""
    server.refreshed_at = timezone.now()
    server.save(update_fields=["tools", "error", "refreshed_at"])
    return True


def _describe_tool(tool: "types.Tool") -> dict[str, Any] | None:
    """Return a tool in the form in which it is stored; None if it is too large to be offered."""
    parameters = {"type": "object", "properties": {}} | clean_json(tool.input_schema)
    parameters.pop("$schema", None)
    if len(tool.name) > MAX_TOOL_NAME or len(json.dumps(parameters)) > MAX_SCHEMA_CHARS:
        return None
    return {
        "name": clean_text(tool.name),
        "description": clean_text(tool.description or "")[:MAX_DESCRIPTION_CHARS],
        "parameters": parameters,
    }

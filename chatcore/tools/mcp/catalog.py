"""The tools of MCP servers that sessions have chosen, under names that every provider accepts."""

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Q

from chatcore.models import McpServer, Session
from chatcore.providers.base import Tool

PREFIX = "mcp__"
MAX_CHARS = 64  # of a tool's name, in both protocols
_REFUSED_CHARS = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, kw_only=True)
class McpTool:
    """A tool of a server: its name there, and how the model sees it."""

    server: McpServer
    name: str
    definition: Tool


def is_tool_name(name: str) -> bool:
    """Return True if this may be the name of an MCP server's tool."""
    return name.startswith(PREFIX)


def build_tool_name(server_name: str, tool_name: str) -> str:
    """Return `mcp__SERVER__TOOL`; a name that must be changed or cut ends with a short hash."""
    clean_name = _REFUSED_CHARS.sub("_", tool_name)
    full_name = f"{PREFIX}{server_name}__{clean_name}"
    if clean_name == tool_name and len(full_name) <= MAX_CHARS:
        return full_name
    mark = hashlib.sha256(tool_name.encode()).hexdigest()[:7]
    return f"{full_name[: MAX_CHARS - 1 - len(mark)]}_{mark}"


def list_tools_of(server: McpServer) -> list[McpTool]:
    """Return what a server offered when it was asked last."""
    return [
        McpTool(
            server=server,
            name=tool["name"],
            definition=Tool(
                name=build_tool_name(server.name, tool["name"]),
                description=tool["description"],
                parameters=tool["parameters"],
            ),
        )
        for tool in server.tools
    ]


def list_available_tools(user: AbstractBaseUser | AnonymousUser) -> list[McpTool]:
    """Return the tools that a user's sessions may choose."""
    servers = McpServer.objects.visible_to(user).filter(is_active=True)
    return _index_tools(servers)


def list_chosen_tools(names: Collection[str] | None, session_id: UUID | None) -> list[McpTool]:
    """Return the tools with these names that the session's owner may use, in a fixed order.

    Without such a name among them this takes no query.
    """
    chosen_names = {name for name in names or () if is_tool_name(name)}
    if not chosen_names or session_id is None:
        return []
    is_own = Q(owner__chat_sessions=session_id)
    is_in_group = Q(groups=None) | Q(groups__user__chat_sessions=session_id)
    servers = McpServer.objects.filter(is_own | (Q(owner=None) & is_in_group), is_active=True)
    tools = _index_tools(servers.distinct())
    return [tool for tool in tools if tool.definition.name in chosen_names]


def find_chosen_tool(name: str, session_id: UUID) -> McpTool | None:
    """Return the tool with this name if the session has chosen it."""
    if not is_tool_name(name):
        return None
    chosen_names = Session.objects.values_list("tools", flat=True).get(pk=session_id)
    if name not in (chosen_names or ()):
        return None
    return next(iter(list_chosen_tools([name], session_id)), None)


def _index_tools(servers: Collection[McpServer]) -> list[McpTool]:
    """Return the servers' tools by name; a user's own server hides a shared one of its name."""
    tools: dict[str, McpTool] = {}
    names_of_own = {server.name for server in servers if server.owner_id is not None}
    for server in servers:
        if server.owner_id is not None or server.name not in names_of_own:
            tools |= {tool.definition.name: tool for tool in list_tools_of(server)}
    return [tools[name] for name in sorted(tools)]

"""The tools of MCP servers that sessions have chosen, under names that every provider accepts."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Q

from chatcore.accounts.rights import EVERYTHING, AllowedNames, Kind, list_allowed, list_allowed_in
from chatcore.models import McpServer, Session, Turn
from chatcore.providers.base import Tool

PREFIX = "mcp__"
OWN_PREFIX = "own__"  # instead of it in the rights of groups, for servers that people bring
MAX_CHARS = 64  # of a tool's name, in both protocols
_REFUSED_CHARS = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, kw_only=True)
class McpTool:
    """A tool of a server: its name there, and how the model sees it."""

    server: McpServer
    name: str
    definition: Tool
    needs_approval: bool

    @property
    def name_in_rights(self) -> str:
        """What groups call it. Nobody but an operator gives a name that begins with PREFIX."""
        name = self.definition.name
        return name if self.server.owner_id is None else OWN_PREFIX + name.removeprefix(PREFIX)

    @property
    def digest(self) -> str:
        """What a person's word about it holds for: this address, description and schema."""
        definition = self.definition
        facts = (self.server.reveal_url(), self.name, definition.description, definition.parameters)
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


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
            needs_approval=(tool.get("approval") or server.require_approval)
            != McpServer.Approval.NEVER,
        )
        for tool in server.tools
    ]


def list_available_tools(user: AbstractBaseUser | AnonymousUser) -> list[McpTool]:
    """Return the tools that a user's sessions may choose."""
    servers = McpServer.objects.visible_to(user).filter(is_active=True)
    allowed_names = list_allowed(user.pk, Kind.TOOL)
    return [tool for tool in _index_tools(servers) if tool.name_in_rights in allowed_names]


def list_chosen_tools(
    names: Collection[str] | None, session_id: UUID | None, allowed_names: AllowedNames
) -> list[McpTool]:
    """Return the tools with these names of servers that the owner may use, in a fixed order.

    Without a name of theirs in `names` this takes no query.
    """
    chosen_names = {name for name in names or () if is_tool_name(name)}
    if not chosen_names or session_id is None:
        return []
    is_own = Q(owner__chat_sessions=session_id, turn=None)
    is_in_group = Q(groups=None) | Q(groups__user__chat_sessions=session_id)
    servers = McpServer.objects.filter(is_own | (Q(owner=None) & is_in_group), is_active=True)
    tools = _index_tools(servers.distinct())
    return [
        tool
        for tool in tools
        if tool.definition.name in chosen_names and tool.name_in_rights in allowed_names
    ]


def list_turn_tools(turn: Turn) -> list[McpTool]:
    """Return the tools of the servers that the turn's request brought along, in a fixed order.

    For other turns this takes no query.
    """
    if not turn.has_servers:
        return []
    allowed_names = list_allowed(turn.session.owner_id, Kind.TOOL)
    tools = _index_tools(turn.mcp_servers.order_by("name"))
    return [tool for tool in tools if tool.name_in_rights in allowed_names]


def find_tools(turn: Turn, names: Iterable[str]) -> dict[str, McpTool]:
    """Return the tools with these names that may be called in a turn, by name.

    Those of its request come before those that its session has chosen.
    """
    tool_names = {name for name in names if is_tool_name(name)}
    if not tool_names:
        return {}
    session_id = turn.session_id
    session_tools = Session.objects.values_list("tools", flat=True).get(pk=session_id)
    chosen_names = tool_names.intersection(session_tools or ())
    allowed_names = list_allowed_in(session_id, Kind.TOOL) if chosen_names else EVERYTHING
    chosen_tools = list_chosen_tools(chosen_names, session_id, allowed_names)
    tools = (*chosen_tools, *list_turn_tools(turn))
    return {tool.definition.name: tool for tool in tools if tool.definition.name in tool_names}


def split_tool_name(name: str) -> tuple[str, str]:
    """Return the server's and the tool's part of `mcp__SERVER__TOOL`; the tool's may be cut."""
    server_name, _, tool_name = name.removeprefix(PREFIX).partition("__")
    return server_name, tool_name


def _index_tools(servers: Iterable[McpServer]) -> list[McpTool]:
    """Return the servers' tools by name; a shared server hides a user's own one of its name."""
    servers = list(servers)
    tools: dict[str, McpTool] = {}
    shared_names = {server.name for server in servers if server.owner_id is None}
    for server in servers:
        if server.owner_id is None or server.name not in shared_names:
            tools |= {tool.definition.name: tool for tool in list_tools_of(server)}
    return [tools[name] for name in sorted(tools)]

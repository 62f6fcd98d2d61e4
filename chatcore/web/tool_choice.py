"""The tools that a chat may choose: those of this server, and those of each MCP server."""

from dataclasses import dataclass, field

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from chatcore.accounts.rights import Kind, list_allowed
from chatcore.models import Session
from chatcore.tools import registry as tool_registry
from chatcore.tools.mcp import catalog


@dataclass(frozen=True, kw_only=True)
class ToolChoice:
    """A tool: its name in the API, how people see it, and whether the chat has chosen it."""

    name: str
    label: str
    description: str
    is_chosen: bool


@dataclass(frozen=True)
class ToolGroup:
    """The tools of a server; its name is empty for those that are built in."""

    server: str
    tools: list[ToolChoice] = field(default_factory=list)


def list_tool_groups(user: AbstractBaseUser | AnonymousUser, session: Session) -> list[ToolGroup]:
    """Return what the chat's owner may choose from, the built-in tools first."""
    built_in_tools = [
        ToolChoice(
            name=tool.name,
            label=tool.name,
            description=tool.description,
            is_chosen=session.tools is None or tool.name in session.tools,
        )
        for tool in tool_registry.build_definitions(allowed_names=list_allowed(user.pk, Kind.TOOL))
    ]
    groups: dict[str, ToolGroup] = {}
    for tool in catalog.list_available_tools(user):
        choice = ToolChoice(
            name=tool.definition.name,
            label=tool.name,
            description=tool.definition.description,
            is_chosen=tool.definition.name in (session.tools or ()),
        )
        server_name = tool.server.name
        groups.setdefault(server_name, ToolGroup(server_name)).tools.append(choice)
    return [ToolGroup("", built_in_tools), *groups.values()]

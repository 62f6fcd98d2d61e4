"""MCP servers that a request brings along: they are there for its turn, and gone with it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import transaction

from chatcore.base.threads import TOOLS, run_until_stored
from chatcore.events import log as event_log
from chatcore.events.types import EventType, ToolsListedPayload
from chatcore.models import McpServer, Turn
from chatcore.tools.mcp.refresh import ask_server


@dataclass(frozen=True, kw_only=True)
class RequestServer:
    """A server as a request names it. `rules` are those of tools/mcp/rules.py."""

    label: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    require_approval: str = McpServer.Approval.ALWAYS
    rules: Mapping[str, object] = field(default_factory=dict)

    def write_to(self, row: McpServer) -> None:
        """Give a row these values. It is asked for its tools again, as its rules may differ."""
        row.name = self.label
        row.seal(self.url, self.headers)
        row.require_approval, row.rules = self.require_approval, dict(self.rules)
        row.refreshed_at, row.error = None, ""


def attach_servers(turn: Turn, servers: Sequence[RequestServer]) -> list[UUID]:
    """Give a turn the servers of a request, inside its transaction.

    A server with a known label takes the place of the earlier one. Returns the ids of those that
    are new to the turn.
    """
    if not servers:
        return []
    rows = {row.name: row for row in turn.mcp_servers.all()}
    new_ids = []
    for server in servers:
        row = rows.get(server.label)
        if row is None:
            row = McpServer(turn=turn, owner_id=turn.session.owner_id)
            new_ids.append(row.pk)
        server.write_to(row)
        row.save()
    turn.has_servers = True
    turn.save(update_fields=["has_servers"])
    return new_ids


async def ask_new_servers(turn: Turn) -> None:
    """Ask the turn's servers for their tools, all at once, where nobody has asked them yet.

    A server that cannot be asked offers nothing, and the answer is written without it.
    """
    if not turn.has_servers:
        return
    servers = await run_until_stored(_load_new_servers, turn)
    await asyncio.gather(*(_ask_server(turn, server) for server in servers))


def forget_secrets(turn: Turn) -> None:
    """Forget the headers and addresses of the turn's servers: they may hold keys, and are over."""
    if turn.has_servers:
        turn.mcp_servers.update(encrypted_headers="", url="")


async def _ask_server(turn: Turn, server: McpServer) -> None:
    # Once only: an answer that was not stored must not make the server wait for another question.
    await TOOLS.run_for(turn.session.owner_id, ask_server, server)
    await run_until_stored(_store_tools, turn, server)


def _load_new_servers(turn: Turn) -> list[McpServer]:
    return list(turn.mcp_servers.filter(refreshed_at=None, error=""))


def _store_tools(turn: Turn, server: McpServer) -> None:
    """Store what a server said, and announce it."""
    payload = ToolsListedPayload(
        turn=str(turn.pk),
        server=str(server.pk),
        name=server.name,
        tools=len(server.tools),
        error=server.error,
    )
    with transaction.atomic():
        server.save(update_fields=["tools", "error", "refreshed_at"])
        event_log.append_events(turn.session_id, (EventType.TOOLS_LISTED, payload))

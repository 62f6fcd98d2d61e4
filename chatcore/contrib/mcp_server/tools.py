"""The tools that this server offers to other agents, and the server of the SDK that has them."""

import functools
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Annotated, Any, Literal
from uuid import UUID

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from chatcore.base.net.outbound import build_user_agent
from chatcore.base.threads import run_in_thread
from chatcore.contrib.mcp_server.rest_calls import RestRefusal, call_rest, find_cursor

INSTRUCTIONS = (
    "The long-term memory of conversations with a person. Search it before you ask the person for"
    " something that may have been said. The ledger of a session holds its rules, decisions and"
    " exact values; what `remember` writes there is sent with each of its later requests."
)
SESSION_FIELDS = ("id", "title", "model", "message_count", "created_at", "updated_at")
MESSAGE_FIELDS = ("seq", "role", "content", "tool_name", "created_at")
HIT_FIELDS = ("session", "seq", "role", "snippet", "created_at")
LINE_FIELDS = ("id", "kind", "text", "status", "pinned", "seq", "created_at")

# The headers of the request that is served, from which each call takes its user.
request_headers: ContextVar[Mapping[bytes, bytes]] = ContextVar("request_headers")

Limit = Annotated[int, Field(ge=1, le=100)]
Kind = Literal["rule", "preference", "decision", "commitment", "fact", "value"]
Status = Literal["current", "superseded", "dropped"]


async def list_sessions(
    query: str | None = None, archived: bool = False, limit: Limit = 20, cursor: str | None = None
) -> dict[str, Any]:
    """List the person's sessions, the one used last first; `query` is a part of the title."""
    values = {"q": query, "archived": str(archived).lower(), "limit": limit, "cursor": cursor}
    page = await _call("GET", "sessions", query=values)
    return _build_page("sessions", page, SESSION_FIELDS)


async def search_history(
    query: str, session: UUID | None = None, limit: Limit = 8
) -> dict[str, Any]:
    """Find messages by a question in ordinary words, the best first.

    It searches all sessions, or the one that is named, and messages that a summary has replaced
    too. "Quoted words" must stand in a message as they are.
    """
    path = f"sessions/{session}/search" if session else "search"
    page = await _call("GET", path, query={"q": query, "limit": limit})
    return _build_page("hits", page, HIT_FIELDS)


async def read_session(
    session: UUID,
    order: Literal["asc", "desc"] = "asc",
    limit: Limit = 20,
    cursor: str | None = None,
) -> dict[str, Any]:
    """Read the messages of a session page by page: the oldest first, or with `desc` the newest."""
    values = {"order": order, "limit": limit, "cursor": cursor}
    page = await _call("GET", f"sessions/{session}/messages", query=values)
    return _build_page("messages", page, MESSAGE_FIELDS)


async def read_summary(session: UUID) -> dict[str, Any]:
    """Read the summary of a session, and from which message on it is still sent word for word."""
    row = await _call("GET", f"sessions/{session}")
    return _pick(row, ("id", "title", "compacted_summary", "compact_boundary_seq", "message_count"))


async def read_ledger(
    session: UUID, status: Status | None = "current", cursor: str | None = None
) -> dict[str, Any]:
    """Read the ledger of a session: rules, decisions and exact values, word for word."""
    values = {"status": status, "limit": 100, "cursor": cursor}
    page = await _call("GET", f"sessions/{session}/ledger", query=values)
    return _build_page("lines", page, LINE_FIELDS)


async def remember(session: UUID, text: str, kind: Kind = "preference") -> dict[str, Any]:
    """Write a line into the ledger of a session, which its model sees from then on."""
    body = {"kind": kind, "text": text}
    return _pick(await _call("POST", f"sessions/{session}/ledger", body=body), LINE_FIELDS)


async def edit_ledger_line(
    session: UUID,
    line: int,
    text: str | None = None,
    kind: Kind | None = None,
    status: Status | None = None,
    pinned: bool | None = None,
) -> dict[str, Any]:
    """Change a line of the ledger; what is left out stays as it is."""
    changes = {"text": text, "kind": kind, "status": status, "pinned": pinned}
    body = {name: value for name, value in changes.items() if value is not None}
    row = await _call("PATCH", f"sessions/{session}/ledger/{line}", body=body)
    return _pick(row, LINE_FIELDS)


@functools.cache
def build_server() -> Any:
    """Return the server; it has no state, so one serves all requests of a process."""
    server = MCPServer(
        "chatcore", instructions=INSTRUCTIONS, version=build_user_agent("").split()[0].split("/")[1]
    )
    for tool in (
        list_sessions,
        search_history,
        read_session,
        read_summary,
        read_ledger,
        remember,
        edit_ledger_line,
    ):
        server.add_tool(tool)
    return server


async def _call(method: str, path: str, **options: Any) -> Any:
    try:
        return await run_in_thread(call_rest, request_headers.get(), method, path, **options)
    except RestRefusal as error:
        raise ToolError(str(error)) from None


def _build_page(name: str, page: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    rows = [_pick(row, fields) for row in page["results"]]
    return {name: rows, "next_cursor": find_cursor(page)}


def _pick(row: Mapping[str, object], fields: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in fields if row[name] not in (None, "")}

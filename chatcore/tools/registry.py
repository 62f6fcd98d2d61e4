"""List the tools that run here or on MCP servers, describe them to the model, and run calls."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from chatcore.context.queries import has_stored_outputs
from chatcore.models import Session
from chatcore.providers.base import Tool, ToolCall
from chatcore.tools import calculate, current_time, fetch_url, read_tool_output, search_history
from chatcore.tools.arguments import parse_arguments
from chatcore.tools.base import BuiltInTool, ToolError, render_value
from chatcore.tools.mcp import catalog as mcp_catalog
from chatcore.tools.mcp import connection as mcp_connection

log = logging.getLogger(__name__)

_SELECTABLE_TOOLS = (current_time.TOOL, calculate.TOOL, fetch_url.TOOL, search_history.TOOL)
BUILT_IN_TOOLS: dict[str, BuiltInTool] = {
    tool.name: tool for tool in (*_SELECTABLE_TOOLS, read_tool_output.TOOL)
}


@dataclass(frozen=True, kw_only=True)
class ToolOutcome:
    """The result of a call: a text for the model, which may describe an error."""

    content: str
    is_error: bool = False


def build_definitions(
    names: Collection[str] | None = None,
    *,
    has_outputs: bool = False,
    session_id: UUID | None = None,
) -> list[Tool]:
    """Return the definitions of the named tools (None: of all built-in ones), in a fixed order.

    Unknown names are ignored. With `has_outputs` the tool that reads stored outputs is always
    included, because notes at the end of shortened outputs refer to it. With `session_id` the names
    may be those of MCP servers' tools that the session's owner may use.
    """
    tools = [tool for tool in _SELECTABLE_TOOLS if names is None or tool.name in names]
    if has_outputs:
        tools.append(read_tool_output.TOOL)
    mcp_tools = mcp_catalog.list_chosen_tools(names, session_id)
    return [
        *(tool.definition for tool in tools),
        *(tool.definition for tool in mcp_tools),
    ]


def list_session_tools(session: Session) -> list[Tool]:
    """Return the tools that the session's model may call; none if it cannot call tools.

    The models of a provider with the option `server_tools: false` are offered those of clients
    alone.
    """
    if session.model is None or not session.model.may_call_tools:
        return []
    if not session.model.provider.options.get("server_tools", True):
        return []
    return build_definitions(
        session.tools, has_outputs=has_stored_outputs(session.pk), session_id=session.pk
    )


def run_tool(call: ToolCall, *, session_id: UUID) -> ToolOutcome:
    """Run one call for a session, and block until it is done.

    Never raises: a failure becomes an error result, which the model reads.
    """
    try:
        return ToolOutcome(content=_run(call, session_id))
    except ToolError as error:
        return ToolOutcome(content=str(error), is_error=True)
    except Exception:
        log.exception("tool failed", extra={"tool": call.name, "session": str(session_id)})
        return ToolOutcome(content=f"The tool {call.name} failed.", is_error=True)


def _run(call: ToolCall, session_id: UUID) -> str:
    tool = BUILT_IN_TOOLS.get(call.name)
    if tool is not None:
        tool_arguments = parse_arguments(call.arguments, tool.parameters)
        return render_value(tool.run(tool_arguments, session_id))
    mcp_tool = mcp_catalog.find_chosen_tool(call.name, session_id)
    if mcp_tool is None:
        known_names = ", ".join(BUILT_IN_TOOLS)
        raise ToolError(f"There is no tool called {call.name!r}. There are: {known_names}.")
    # Only its server checks the rest: a schema of a stranger could name addresses to load.
    arguments = parse_arguments(call.arguments, {})
    return mcp_connection.call_tool(mcp_tool.server, mcp_tool.name, arguments)

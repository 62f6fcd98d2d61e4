"""List the tools that run here or on MCP servers, describe them to the model, and run calls."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from chatcore.accounts.rights import (
    EVERYTHING,
    AllowedNames,
    Kind,
    list_allowed_in,
    list_allowed_tools,
)
from chatcore.base.tracing import get_traces
from chatcore.context.live_messages import ActiveRevision
from chatcore.context.past_files import has_large_files
from chatcore.models import Session, Turn
from chatcore.projects.system_text import has_left_out
from chatcore.providers.base import Tool, ToolCall
from chatcore.tools import (
    calculate,
    current_time,
    fetch_url,
    read_attachment,
    read_tool_output,
    search_history,
    search_project_files,
    search_web,
)
from chatcore.tools.arguments import parse_arguments
from chatcore.tools.base import BuiltInTool, ToolError, render_value
from chatcore.tools.mcp import catalog as mcp_catalog
from chatcore.tools.mcp import connection as mcp_connection
from chatcore.tools.mcp.catalog import McpTool

log = logging.getLogger(__name__)

_SELECTABLE_TOOLS = (
    current_time.TOOL,
    calculate.TOOL,
    search_web.TOOL,
    fetch_url.TOOL,
    search_history.TOOL,
)
# They read what a request names and does not show, so they are no choice.
_NEEDED_TOOLS = (read_tool_output.TOOL, search_project_files.TOOL, read_attachment.TOOL)
_NEEDED_NAMES = [tool.name for tool in _NEEDED_TOOLS]
BUILT_IN_TOOLS: dict[str, BuiltInTool] = {
    tool.name: tool for tool in (*_SELECTABLE_TOOLS, *_NEEDED_TOOLS)
}


@dataclass(frozen=True, kw_only=True)
class ToolOutcome:
    """The result of a call: a text for the model, which may describe an error."""

    content: str
    is_error: bool = False


def build_definitions(
    names: Collection[str] | None = None,
    *,
    allowed_names: AllowedNames = EVERYTHING,
    has_outputs: bool = False,
    has_hidden_files: bool = False,
    has_past_files: bool = False,
    session_id: UUID | None = None,
) -> list[Tool]:
    """Return the definitions of the named tools (None: of all built-in ones), in a fixed order.

    Unknown names are ignored, and those that are not in `allowed_names`. With `has_outputs` the
    tool that reads stored outputs is always included, because notes at the end of shortened outputs
    refer to it; with `has_hidden_files`, the one that reads files of the project, because the
    system text names files that are not shown; with `has_past_files`, the one that reads files of
    messages, because the text beside the summary names some, or one that is shown may be cut. With
    `session_id` the names may be those of MCP servers' tools that the session's owner may use.
    """
    tools = [
        tool
        for tool in _SELECTABLE_TOOLS
        if (names is None or tool.name in names)
        and tool.name in allowed_names
        and (tool is not search_web.TOOL or search_web.is_available())
    ]
    if has_outputs:
        tools.append(read_tool_output.TOOL)
    if has_hidden_files:
        tools.append(search_project_files.TOOL)
    if has_past_files:
        tools.append(read_attachment.TOOL)
    mcp_tools = mcp_catalog.list_chosen_tools(names, session_id, allowed_names)
    return [
        *(tool.definition for tool in tools),
        *(tool.definition for tool in mcp_tools),
    ]


def list_session_tools(session: Session, revision: ActiveRevision) -> list[Tool]:
    """Return the tools that the session's model may call; none if it cannot call tools.

    `revision` is what its next request is built on. The models of a provider with the option
    `server_tools: false` are offered those of clients alone.
    """
    if session.model is None or not session.model.may_call_tools:
        return []
    if not session.model.provider.options.get("server_tools", True):
        return []
    return build_definitions(
        session.tools,
        allowed_names=list_allowed_tools(session.owner_id, has_limits=revision.has_tool_limits),
        has_outputs=revision.has_outputs,
        has_hidden_files=has_left_out(session),
        has_past_files=revision.past_files.has_texts
        or (revision.has_files and has_large_files(session)),
        session_id=session.pk,
    )


def run_allowed_tool(call: ToolCall, turn: Turn) -> ToolOutcome:
    """Run one call of a turn, if the session's choice and its owner's rights let it. Never raises.

    A model may name a tool that it was not offered: a text that it read can say so.
    """
    traces = get_traces()
    with traces.trace_tool(call):
        if refusal := _find_refusal(call.name, turn.session_id):
            outcome = ToolOutcome(content=refusal, is_error=True)
        else:
            outcome = run_tool(call, session_id=turn.session_id, turn=turn)
        traces.note({}, error_type="tool_error" if outcome.is_error else "")
    return outcome


def run_tool(call: ToolCall, *, session_id: UUID, turn: Turn | None = None) -> ToolOutcome:
    """Run one call for a session, or a turn of it, and block until it is done.

    Never raises: a failure becomes an error result, which the model reads.
    """
    try:
        return ToolOutcome(content=_run(call, session_id, turn))
    except ToolError as error:
        return ToolOutcome(content=str(error), is_error=True)
    except Exception:
        log.exception("tool failed", extra={"tool": call.name, "session": str(session_id)})
        return ToolOutcome(content=f"The tool {call.name} failed.", is_error=True)


def call_mcp_tool(tool: McpTool, call: ToolCall) -> str:
    """Call a tool of an MCP server and return its text. Raises ToolError."""
    # Only its server checks the rest: a schema of a stranger could name addresses to load.
    arguments = parse_arguments(call.arguments, {})
    return mcp_connection.call_tool(tool.server, tool.name, arguments)


def _find_refusal(name: str, session_id: UUID) -> str:
    """Return why a built-in tool may not run now; empty if it may."""
    if name not in BUILT_IN_TOOLS or name in _NEEDED_NAMES:
        return ""
    session = Session.objects.filter(pk=session_id)
    [(chosen_names, options)] = session.values_list("tools", "model__provider__options")
    is_offered = (options or {}).get("server_tools", True)
    if not is_offered or (chosen_names is not None and name not in chosen_names):
        return f"The tool {name!r} is not switched on in this session."
    if name not in list_allowed_in(session_id, Kind.TOOL):
        return f"The user may not use the tool {name!r}."
    return ""


def _run(call: ToolCall, session_id: UUID, turn: Turn | None) -> str:
    tool = BUILT_IN_TOOLS.get(call.name)
    if tool is not None:
        tool_arguments = parse_arguments(call.arguments, tool.parameters)
        return render_value(tool.run(tool_arguments, session_id))
    mcp_tool = mcp_catalog.find_tools(turn, [call.name]).get(call.name) if turn else None
    if mcp_tool is None:
        known_names = ", ".join(BUILT_IN_TOOLS)
        raise ToolError(f"There is no tool called {call.name!r}. There are: {known_names}.")
    return call_mcp_tool(mcp_tool, call)

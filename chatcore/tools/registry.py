"""The tools that run here: what the model is told of them, and the one way to run a call."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from chatcore.models import Session
from chatcore.providers.base import Tool, ToolCall
from chatcore.tools import (
    arguments,
    calculate,
    current_time,
    fetch_url,
    read_tool_output,
    search_history,
)
from chatcore.tools.base import BuiltInTool, ToolError

log = logging.getLogger(__name__)

_SELECTABLE_TOOLS = (current_time.TOOL, calculate.TOOL, fetch_url.TOOL, search_history.TOOL)
BUILT_IN_TOOLS: dict[str, BuiltInTool] = {
    tool.name: tool for tool in (*_SELECTABLE_TOOLS, read_tool_output.TOOL)
}


@dataclass(frozen=True, kw_only=True)
class ToolOutcome:
    """What a call came to: text for the model; an error is a result too."""

    content: str
    is_error: bool = False


def build_definitions(
    names: Collection[str] | None = None, *, has_outputs: bool = False
) -> list[Tool]:
    """The tools of these names, all when None, always in the same order; names that are not built in are passed over.

    The one that reads kept outputs is there when there are any, whatever the names: the outputs themselves point to it.
    """
    tool_definitions = [
        tool.to_definition() for tool in _SELECTABLE_TOOLS if names is None or tool.name in names
    ]
    return (
        [*tool_definitions, read_tool_output.TOOL.to_definition()]
        if has_outputs
        else tool_definitions
    )


def list_session_tools(session: Session) -> list[Tool]:
    """What the session's model is told of before its next request; nothing if it cannot call tools."""
    if session.model is None or not session.model.supports_tools:
        return []
    return build_definitions(
        session.tools, has_outputs=read_tool_output.has_stored_outputs(session.pk)
    )


def run_tool(call: ToolCall, *, session_id: UUID) -> ToolOutcome:
    """Run one call for a session, blocking. Never raises: what goes wrong is told to the model as an error result."""
    tool = BUILT_IN_TOOLS.get(call.name)
    if tool is None:
        return ToolOutcome(
            content=f"There is no tool called {call.name!r}. There are: {', '.join(BUILT_IN_TOOLS)}.",
            is_error=True,
        )
    try:
        return ToolOutcome(
            content=tool.run(arguments.parse_arguments(call.arguments, tool.parameters), session_id)
        )
    except ToolError as error:
        return ToolOutcome(content=str(error), is_error=True)
    except Exception:
        log.exception("tool failed", extra={"tool": tool.name, "session": str(session_id)})
        return ToolOutcome(content=f"The tool {tool.name} failed.", is_error=True)

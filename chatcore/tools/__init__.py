"""The tools that run here: what the model is told of them, and the one way to run a call."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from chatcore.providers.base import Tool, ToolCall
from chatcore.tools import arguments, calculate, current_time, fetch_url, search_history
from chatcore.tools.base import BuiltInTool, ToolError

log = logging.getLogger(__name__)

BUILT_IN: dict[str, BuiltInTool] = {tool.name: tool for tool in (current_time.TOOL, calculate.TOOL, fetch_url.TOOL, search_history.TOOL)}


@dataclass(frozen=True, kw_only=True)
class ToolOutcome:
    """What a call came to: text for the model; an error is a result too."""

    content: str
    is_error: bool = False


def definitions(names: Collection[str] | None = None) -> list[Tool]:
    """The tools of these names, all when None, always in the same order; names that are not built in are passed over."""
    return [tool.definition() for tool in BUILT_IN.values() if names is None or tool.name in names]


def run(call: ToolCall, *, session_id: UUID) -> ToolOutcome:
    """Run one call for a session, blocking. Never raises: what goes wrong is told to the model as an error result."""
    tool = BUILT_IN.get(call.name)
    if tool is None:
        return ToolOutcome(content=f"There is no tool called {call.name!r}. There are: {', '.join(BUILT_IN)}.", is_error=True)
    try:
        return ToolOutcome(content=tool.run(arguments.read(call.arguments, tool.parameters), session_id))
    except ToolError as error:
        return ToolOutcome(content=str(error), is_error=True)
    except Exception:
        log.exception("tool failed", extra={"tool": tool.name, "session": str(session_id)})
        return ToolOutcome(content=f"The tool {tool.name} failed.", is_error=True)

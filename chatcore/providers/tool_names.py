"""Send every tool under a name that providers accept, and give its own name back in the answer.

Programs name tools after their servers (`mcp__SERVER__TOOL`), so real names are longer than the 64
characters that providers accept, and others have dots or spaces.
"""

from collections.abc import Mapping
from dataclasses import replace

from chatcore.providers.base import Request, StreamEnd, fit_name


def fit_tool_names(request: Request) -> tuple[Request, dict[str, str]]:
    """Return the request with names that are accepted, and the own names by those that changed.

    The names of calls in the history are those of `ToolCall.sent_name`.
    """
    own_names = {
        fit_name(tool.name): tool.name for tool in request.tools if fit_name(tool.name) != tool.name
    }
    if not own_names:
        return request, {}
    tools = [replace(tool, name=fit_name(tool.name)) for tool in request.tools]
    params = dict(request.params)
    if "tool_choice" in params:
        params["tool_choice"] = _fit_choice(params["tool_choice"])
    return replace(request, tools=tools, params=params), own_names


def restore_tool_names(end: StreamEnd, own_names: Mapping[str, str]) -> StreamEnd:
    """Return the end of an answer with the own names of its tools."""
    if not own_names:
        return end
    calls = tuple(
        replace(call, name=own_names.get(call.name, call.name)) for call in end.tool_calls
    )
    refused_tools = tuple(own_names.get(name, name) for name in end.refused_tools)
    return replace(end, tool_calls=calls, refused_tools=refused_tools)


def _fit_choice(choice: object) -> object:
    """Return the choice of one tool, in the words of either protocol, with a name that fits."""
    if not isinstance(choice, Mapping):
        return choice
    if isinstance(choice.get("name"), str):
        return {**choice, "name": fit_name(choice["name"])}
    function = choice.get("function")
    if isinstance(function, Mapping) and isinstance(function.get("name"), str):
        return {**choice, "function": {**function, "name": fit_name(function["name"])}}
    return choice

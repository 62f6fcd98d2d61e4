"""The tools of a request, and which of them the model may call."""

from collections.abc import Mapping
from typing import Any

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.content_parts import parse_required_text
from chatcore.contrib.compat.responses.mcp import request_servers
from chatcore.models import Session
from chatcore.tools.mcp.catalog import build_tool_name
from chatcore.turns import client_tools
from models_registry.models import AiModel

MODES = ("none", "auto", "required")
CHOICE_DETAIL = "auto, none, required, a function or an MCP server by its name, or allowed_tools."


def parse_tools(value: Any, choice: Any, model: AiModel) -> list[dict[str, Any]]:
    """Return the functions to offer to the model, in the form in which they are stored.

    Tools that `allowed_tools` does not name are not offered: a model that does not see them cannot
    call them, whatever its provider makes of the choice.
    """
    if not value:
        return []
    if not isinstance(value, list):
        raise InvalidFieldError("tools", "A list of tools.")
    definitions = [
        _parse_tool(item, f"tools[{index}]")
        for index, item in enumerate(value)
        if not request_servers.is_mcp_tool(item)
    ]
    # An unsaved session without tools of its own, since the client's are the only ones here.
    tools = client_tools.validate_tools(Session(model=model, tools=[]), definitions)
    allowed_names = _get_allowed_names(choice)
    if allowed_names is None:
        return tools
    return [tool for tool in tools if tool["name"] in allowed_names]


def build_choice_param(choice: Any) -> Any:
    """Return the choice in the words of chat completions; None for the provider's default."""
    if choice is None or choice in MODES:
        return None if choice == "auto" else choice
    if choice["type"] == "allowed_tools":
        mode = choice.get("mode") or "auto"
        return None if mode == "auto" else mode
    if choice["type"] == "mcp":
        name = choice.get("name")
        if not name:
            return "required"
        choice = {"name": build_tool_name(choice["server_label"], name)}
    return {"type": "function", "function": {"name": choice["name"]}}


def build_tool_echo(value: Any) -> list[dict[str, Any]]:
    """Return the tools as the response repeats them."""
    tools = value if isinstance(value, list) else []
    return [_build_echo(tool) for tool in tools if isinstance(tool, Mapping)]


def build_choice_echo(choice: Any) -> Any:
    """Return the choice as the response repeats it. Raises the 400 problem for a wrong one."""
    if choice is None:
        return "auto"
    if choice in MODES:
        return choice
    if not isinstance(choice, Mapping):
        raise InvalidFieldError("tool_choice", CHOICE_DETAIL)
    if choice.get("type") == "function" and isinstance(choice.get("name"), str):
        return {"type": "function", "name": choice["name"]}
    if request_servers.is_mcp_tool(choice):
        return _build_server_echo(choice, "tool_choice")
    if choice.get("type") != "allowed_tools":
        raise InvalidFieldError("tool_choice", CHOICE_DETAIL)
    mode = choice.get("mode") or "auto"
    if mode not in MODES:
        raise InvalidFieldError("tool_choice.mode", "One of none, auto, required.")
    names = sorted(_get_allowed_names(choice) or ())
    tools = [{"type": "function", "name": name} for name in names]
    tools += [
        _build_server_echo(tool, f"tool_choice.tools[{index}]")
        for index, tool in enumerate(choice["tools"])
        if request_servers.is_mcp_tool(tool)
    ]
    return {"type": "allowed_tools", "tools": tools, "mode": mode}


def _get_allowed_names(choice: Any) -> set[str] | None:
    """Return the names of the tools that may be called; None for all."""
    if not isinstance(choice, Mapping) or choice.get("type") != "allowed_tools":
        return None
    tools = choice.get("tools")
    if not isinstance(tools, list):
        raise InvalidFieldError("tool_choice.tools", "A list of tools.")
    names = set()
    for index, tool in enumerate(tools):
        if request_servers.is_mcp_tool(tool):
            continue
        name = tool.get("name") if isinstance(tool, Mapping) else None
        if not isinstance(name, str):
            raise InvalidFieldError(f"tool_choice.tools[{index}].name", "The name of a tool.")
        names.add(name)
    return names


def _build_echo(tool: Mapping[str, Any]) -> dict[str, Any]:
    if request_servers.is_mcp_tool(tool):
        return request_servers.build_echo(tool)
    return {
        "type": "function",
        "name": tool.get("name"),
        "description": tool.get("description"),
        "parameters": tool.get("parameters"),
        "strict": tool.get("strict"),
    }


def _build_server_echo(tool: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the choice of a server, or of one tool of it. Raises the 400 problem."""
    echo = {"type": "mcp"}
    for name in ("server_label", "name"):
        if name == "server_label" or tool.get(name) is not None:
            echo[name] = parse_required_text(tool.get(name), f"{path}.{name}")
    return echo


def _parse_tool(item: Any, path: str) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise InvalidFieldError(path, "An object.")
    if item.get("type") != "function":
        detail = f"Tools of the type {item.get('type')!r} are not supported, only function and mcp."
        raise InvalidFieldError(f"{path}.type", detail)
    name, description, parameters = (item.get(key) for key in ("name", "description", "parameters"))
    if not isinstance(name, str):
        raise InvalidFieldError(f"{path}.name", "A text.")
    if description is not None and not isinstance(description, str):
        raise InvalidFieldError(f"{path}.description", "A text.")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidFieldError(f"{path}.parameters", "An object.")
    return {
        "name": name,
        "description": description,
        "parameters": parameters,
        "strict": item.get("strict") is True,
    }

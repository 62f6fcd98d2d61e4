"""The `mcp` tools of a request: servers that it brings along, and what is said back of them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.content_parts import parse_text
from chatcore.models import McpServer
from chatcore.models.mcp_server import MAX_LABEL_CHARS
from chatcore.tools.mcp.addresses import check_address, check_headers
from chatcore.tools.mcp.turn_servers import RequestServer
from chatcore.turns import client_tools
from models_registry.models import AiModel

MAX_SERVERS = 16
MAX_URL_CHARS = 2000
MAX_DESCRIPTION_CHARS = 500
MAX_NAMES = 500
# `mcp__LABEL__TOOL` is taken apart at the second pair of underscores.
LABEL = re.compile(r"[A-Za-z0-9](?:[_-]?[A-Za-z0-9])*")
APPROVALS = (McpServer.Approval.ALWAYS, McpServer.Approval.NEVER)


def is_mcp_tool(item: Any) -> bool:
    """Return True for a tool that is a server."""
    return isinstance(item, Mapping) and item.get("type") == "mcp"


def parse_servers(value: Any, choice: Any, model: AiModel) -> list[RequestServer]:
    """Return the servers among the tools of a request, without those that the choice leaves out.

    Raises the 400 problem that names the field.
    """
    tools = value if isinstance(value, list) else []
    servers: dict[str, RequestServer] = {}
    for index, item in enumerate(tools):
        if not is_mcp_tool(item):
            continue
        server = _parse_server(item, f"tools[{index}]")
        if server.label in servers:
            raise InvalidFieldError(f"tools[{index}].server_label", "Another server has it.")
        servers[server.label] = server
    if len(servers) > MAX_SERVERS:
        raise InvalidFieldError("tools", f"At most {MAX_SERVERS} MCP servers.")
    if servers and not model.may_call_tools:
        detail = f"The language model {model} calls no tools. {client_tools.WHERE_TO_CHANGE}"
        raise InvalidFieldError("tools", detail)
    allowed_labels = _get_allowed_labels(choice)
    return [
        server
        for server in servers.values()
        if allowed_labels is None or server.label in allowed_labels
    ]


def build_echo(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a server as the response repeats it: without headers, and without what may be a key.

    Keys also stand in the path or the query of addresses, so only the host is repeated.
    """
    parts = urlsplit(item["server_url"])
    echo = {
        "type": "mcp",
        "server_label": item["server_label"],
        "server_url": f"{parts.scheme}://{parts.hostname}/<redacted>",
        "server_description": item.get("server_description"),
        "allowed_tools": item.get("allowed_tools"),
        "require_approval": item.get("require_approval") or McpServer.Approval.ALWAYS.value,
        "headers": None,
    }
    return echo


def _parse_server(item: Mapping[str, Any], path: str) -> RequestServer:
    for name in ("connector_id", "tunnel_id"):
        if item.get(name):
            raise InvalidFieldError(f"{path}.{name}", "Only servers by their server_url.")
    label = parse_text(item.get("server_label"), f"{path}.server_label")
    if len(label) > MAX_LABEL_CHARS or not LABEL.fullmatch(label):
        detail = f"1 to {MAX_LABEL_CHARS} letters and digits, with single _ and - inside."
        raise InvalidFieldError(f"{path}.server_label", detail)
    approval, rules = _parse_approval(item.get("require_approval"), f"{path}.require_approval")
    tool_filter = item.get("allowed_tools")
    if tool_filter is not None:
        rules["allowed"] = _parse_filter(tool_filter, f"{path}.allowed_tools")
    description = item.get("server_description")
    if description:
        text = parse_text(description, f"{path}.server_description")
        rules["description"] = text[:MAX_DESCRIPTION_CHARS]
    return RequestServer(
        label=label,
        url=_parse_url(item.get("server_url"), f"{path}.server_url"),
        headers=_parse_headers(item, path),
        require_approval=approval,
        rules=rules,
    )


def _parse_url(value: Any, path: str) -> str:
    url = parse_text(value, path)
    if len(url) > MAX_URL_CHARS:
        raise InvalidFieldError(path, f"At most {MAX_URL_CHARS} characters.")
    try:
        return check_address(url)
    except ValueError as error:
        raise InvalidFieldError(path, str(error)) from None


def _parse_headers(item: Mapping[str, Any], path: str) -> dict[str, str]:
    headers = item.get("headers")
    if headers is None:
        headers = {}
    if not isinstance(headers, Mapping):
        raise InvalidFieldError(f"{path}.headers", "An object of texts.")
    values = {
        name: parse_text(value, f"{path}.headers.{name[:100]}") for name, value in headers.items()
    }
    if item.get("authorization") is not None:
        token = parse_text(item["authorization"], f"{path}.authorization")
        if any(name.lower() == "authorization" for name in values):
            detail = "Either this or a header of this name, not both."
            raise InvalidFieldError(f"{path}.authorization", detail)
        values["Authorization"] = f"Bearer {token}"
    try:
        return check_headers(values)
    except ValueError as error:
        raise InvalidFieldError(f"{path}.headers", str(error)) from None


def _parse_approval(value: Any, path: str) -> tuple[str, dict[str, Any]]:
    """Return what holds for all tools, and the filters of those for which a word was given."""
    if value is None or value in APPROVALS:
        return value or McpServer.Approval.ALWAYS, {}
    if not isinstance(value, Mapping) or not {*value} <= {*APPROVALS}:
        raise InvalidFieldError(path, "always, never, or an object with filters for each.")
    rules = {
        str(name): _parse_filter(value[name], f"{path}.{name}")
        for name in APPROVALS
        if value.get(name) is not None
    }
    return McpServer.Approval.ALWAYS, rules


def _parse_filter(value: Any, path: str) -> dict[str, Any]:
    """Return a filter of tools: a list of names, or an object with `tool_names` and `read_only`."""
    if isinstance(value, list):
        value = {"tool_names": value}
    if not isinstance(value, Mapping):
        raise InvalidFieldError(path, "A list of names, or an object.")
    names, read_only = value.get("tool_names"), value.get("read_only")
    if names is not None:
        is_list = isinstance(names, list) and len(names) <= MAX_NAMES
        if not is_list or not all(isinstance(name, str) for name in names):
            raise InvalidFieldError(f"{path}.tool_names", f"At most {MAX_NAMES} names of tools.")
    if read_only is not None and not isinstance(read_only, bool):
        raise InvalidFieldError(f"{path}.read_only", "Either true or false.")
    return {"tool_names": names, "read_only": read_only}


def _get_allowed_labels(choice: Any) -> set[str] | None:
    """Return the labels of the servers whose tools may be called; None for all."""
    if not isinstance(choice, Mapping) or choice.get("type") != "allowed_tools":
        return None
    tools: Sequence[Any] = choice.get("tools") or ()
    return {str(tool.get("server_label")) for tool in tools if is_mcp_tool(tool)}

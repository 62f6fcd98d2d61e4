"""Parse the tools of a request for a response, whatever their type.

Every tool that the client runs becomes a function for the model. Its definition notes under
`client` how the client knows it, so that a call comes back in the client's own form.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.bodies import Body, FilledText
from chatcore.contrib.compat.chat_completions.request import Function
from chatcore.contrib.compat.content_parts import iterate_objects, parse_required_text
from chatcore.contrib.compat.custom_tools import CustomDescription
from chatcore.contrib.compat.known_types import Handling, find_handling
from chatcore.contrib.compat.responses.mcp.request_servers import MAX_SERVERS, ServerTool
from chatcore.models import MAX_TOOL_NAME
from chatcore.providers.base import fit_name
from chatcore.tools.mcp.turn_servers import RequestServer
from chatcore.turns.client_tools import CLIENT_FORM

SEARCH_NAME = "tool_search"
WEB_SEARCH_NAME = "web_search"
Definition = dict[str, Any]


class FunctionTool(Function):
    type: Literal["function"]
    defer_loading: bool | None = None

    def build_definition(self, namespace: str = "") -> Definition:
        """Return the function, with how the client knows it if it has a namespace."""
        definition = self.model_dump(exclude={"type", "defer_loading"}, exclude_none=True)
        if not namespace:
            return definition
        form = {"type": "function", "namespace": namespace, "name": self.name}
        return definition | {"name": join_name(self.name, namespace), CLIENT_FORM: form}

    def build_echo(self) -> dict[str, object]:
        """Return the tool as the response repeats it."""
        return self.model_dump(exclude=set() if self.defer_loading else {"defer_loading"})


class CustomTool(CustomDescription):
    """A tool that takes a text and no JSON."""

    type: Literal["custom"]

    def build_definition(self, namespace: str = "") -> Definition:
        """Return a function with one text, which stands for the tool."""
        form = {"type": "custom", "namespace": namespace, "name": self.name}
        return self.build_function() | {"name": join_name(self.name, namespace), CLIENT_FORM: form}


class SearchTool(Body):
    """The search for tools that were not sent, which the client runs."""

    type: Literal["tool_search"]
    execution: Literal["server", "client"] | None = None
    description: str | None = None
    parameters: dict[str, object] | None = None

    def build_definition(self, namespace: str = "") -> Definition:
        """Return the search as a function."""
        return {
            "name": SEARCH_NAME,
            "description": self.description or "Search for tools that are not listed here.",
            "parameters": self.parameters or {},
            CLIENT_FORM: {"type": "tool_search", "namespace": "", "name": SEARCH_NAME},
        }


class Namespace(Body):
    """Tools under a common name."""

    type: Literal["namespace"]
    name: FilledText
    tools: list[dict[str, object]] = []


class SearchFilters(Body):
    allowed_domains: list[str] | None = None


class WebSearchTool(Body):
    """The search of the web that servers of a provider run; what is not named here is its matter.

    It has the form of OpenAI's API, and only Anthropic's protocol has such a tool here.
    """

    type: str
    filters: SearchFilters | None = None
    user_location: dict[str, object] | None = None

    def build_definition(self) -> Definition:
        """Return the tool with its form in Anthropic's protocol."""
        native: dict[str, object] = {"type": "web_search_20250305", "name": WEB_SEARCH_NAME}
        if self.filters and self.filters.allowed_domains:
            native["allowed_domains"] = self.filters.allowed_domains
        if self.user_location:
            native["user_location"] = {"type": "approximate"} | self.user_location
        return {"name": WEB_SEARCH_NAME, "parameters": {}, "native": native}


CLIENT_TOOLS: Mapping[str, type[FunctionTool | CustomTool | SearchTool]] = {
    "function": FunctionTool,
    "custom": CustomTool,
    "tool_search": SearchTool,
}


@dataclass(frozen=True, kw_only=True)
class RequestTools:
    """The tools of a request.

    `definitions` are those of the tools that the client runs, each under a name of its own, and
    `echo` all of them as the response repeats them. `ignored_fields` name what was left out.
    """

    definitions: dict[str, Definition] = field(default_factory=dict)
    servers: dict[str, RequestServer] = field(default_factory=dict)
    echo: list[Mapping[str, object]] = field(default_factory=list)
    ignored_fields: list[str] = field(default_factory=list)

    def find_by_type(self, type: str) -> str | None:
        """Return the name of the tool that a client knows by its type alone, if it is offered."""
        is_search = find_handling("responses.tools", type) is Handling.PASSED_ON
        name = WEB_SEARCH_NAME if is_search else type
        definition = self.definitions.get(name, {})
        is_meant = definition.get("native") or definition.get(CLIENT_FORM, {}).get("type") == type
        return name if is_meant else None


def join_name(name: str, namespace: str) -> str:
    """Return the name under which a tool is stored; the model knows it by this name."""
    return fit_name(f"{namespace}__{name}", MAX_TOOL_NAME) if namespace else name


@dataclass(frozen=True, kw_only=True)
class LiftedTools:
    """The tools of an item of the input, and their path."""

    tools: Sequence[object]
    path: str


def parse_tools(
    tools: Sequence[Mapping[str, object]],
    lifted_tools: Sequence[LiftedTools],
    *,
    passes_on: bool,
) -> RequestTools:
    """Return the tools of a request and those that items of its input brought along.

    With `passes_on`, the provider runs tools of its own. Raises the 400 problem that names the
    field.
    """
    has_search = any(_is_client_search(tool) for tool in tools)
    parser = _ToolParser(has_search=has_search, passes_on=passes_on)
    for path, tool in iterate_objects(tools, "tools"):
        parser.add(tool, path)
    for each in lifted_tools:
        for path, tool in iterate_objects(each.tools, each.path):
            parser.add_lifted(tool, path)
    if len(parser.result.servers) > MAX_SERVERS:
        raise InvalidFieldError("tools", f"At most {MAX_SERVERS} MCP servers.")
    return parser.result


def list_functions(tools: Sequence[object], path: str) -> list[Definition]:
    """Return the functions that stand for the tools of an item. Raises the 400 problem."""
    parser = _ToolParser()
    for tool_path, tool in iterate_objects(tools, path):
        parser.add_lifted(tool, tool_path)
    return list(parser.result.definitions.values())


class _ToolParser:
    """Collects the tools of one request; with a search, it holds back those to be searched for."""

    def __init__(self, *, has_search: bool = False, passes_on: bool = False) -> None:
        self.result = RequestTools()
        self._has_search = has_search
        self._passes_on = passes_on

    def add(self, tool: Mapping[str, object], path: str) -> None:
        """Add a tool of the request itself."""
        type = parse_required_text(tool.get("type"), f"{path}.type")
        if type == "mcp":
            server = ServerTool.parse(tool, path)
            if server.server_label in self.result.servers:
                raise InvalidFieldError(f"{path}.server_label", "Another server has it.")
            self.result.servers[server.server_label] = server.build_server()
            self.result.echo.append(server.build_echo())
            return
        definitions = list(self._read(tool, path))
        for definition in definitions:
            if definition["name"] in self.result.definitions:
                raise InvalidFieldError(f"{path}.name", "Another tool has this name.")
            if not (self._has_search and definition.pop("is_deferred", False)):
                self.result.definitions[definition["name"]] = definition
        self.result.echo.append(
            FunctionTool.parse(tool, path).build_echo() if type == "function" else dict(tool)
        )

    def add_lifted(self, tool: Mapping[str, object], path: str) -> None:
        """Add a tool that an item brought along, in place of an earlier one of its name."""
        for definition in self._read(tool, path):
            definition.pop("is_deferred", None)
            self.result.definitions[definition["name"]] = definition

    def _read(
        self, tool: Mapping[str, object], path: str, namespace: str = ""
    ) -> Iterator[Definition]:
        """Yield the functions that stand for a tool."""
        type = parse_required_text(tool.get("type"), f"{path}.type")
        handling = find_handling("responses.tools", type)
        if handling is Handling.FLATTENED and not namespace:
            space = Namespace.parse(tool, path)
            for inner_path, inner_tool in iterate_objects(space.tools, f"{path}.tools"):
                yield from self._read(inner_tool, inner_path, space.name)
        elif type in CLIENT_TOOLS and not (type == "tool_search" and not _is_client_search(tool)):
            parsed_tool = CLIENT_TOOLS[type].parse(tool, path)
            definition = parsed_tool.build_definition(namespace)
            yield definition | ({"is_deferred": True} if tool.get("defer_loading") else {})
        elif handling is Handling.PASSED_ON and self._passes_on and _may_reach_the_web(tool):
            yield WebSearchTool.parse(tool, path).build_definition()
        else:
            self.result.ignored_fields.append(f"tools.{type[:64]}")


def _is_client_search(tool: Mapping[str, object]) -> bool:
    return tool.get("type") == "tool_search" and tool.get("execution") == "client"


def _may_reach_the_web(tool: Mapping[str, object]) -> bool:
    """Return False for a search of what OpenAI has collected alone, as Codex asks for by itself."""
    return tool.get("external_web_access") is not False

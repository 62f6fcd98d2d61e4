"""The tools of a request, and which of them the model may call."""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from chatcore.contrib.compat.bodies import Body, FilledText
from chatcore.contrib.compat.client_messages import ClientFunction
from chatcore.contrib.compat.content_parts import iterate_objects
from chatcore.contrib.compat.known_types import (
    Handling,
    drop_date,
    find_handling,
    log_unknown,
)
from chatcore.contrib.compat.messages.client_tools import build_client_tool
from chatcore.providers.protocols import load_protocol
from models_registry.models import AiModel

SERVER_SEARCH = "tool_search_tool_"  # begins the types of Anthropic's own searches for tools


MARK_TYPES = ("ephemeral",)
MARK_TIMES = ("5m", "1h")


class CacheControl(Body):
    """A mark behind a part of a request, up to which its provider is to cache."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


def _drop_nulls(schema: Mapping[str, object]) -> dict[str, object]:
    """Return a schema in which an empty list of properties may be null."""
    return {name: part for name, part in schema.items() if part is not None}


def is_unknown_mark(mark: object) -> bool:
    """Return True for a mark of a later version, by its type or its time; it is left out."""
    if not isinstance(mark, Mapping):
        return False
    type, ttl = mark.get("type"), mark.get("ttl")
    is_known = (not isinstance(type, str) or type in MARK_TYPES) and (
        not isinstance(ttl, str) or ttl in MARK_TIMES
    )
    if not is_known:
        log_unknown("marks of the cache", f"{type} {ttl}"[:64])
    return not is_known


class MessageTool(ClientFunction):
    """A tool that the client runs; others run elsewhere."""

    type: Literal["custom"] | None = None
    parameters: Annotated[dict[str, object], AfterValidator(_drop_nulls)] = Field(
        alias="input_schema"
    )
    cache_control: CacheControl | None = None


class KnownTool(Body):
    """A tool of Anthropic's own, whose other members are its provider's matter."""

    type: str
    name: FilledText


class FreeChoice(Body):
    type: Literal["auto", "any"]
    disable_parallel_tool_use: bool | None = None


class NamedChoice(Body):
    type: Literal["tool"]
    name: str
    disable_parallel_tool_use: bool | None = None


class NoChoice(Body):
    type: Literal["none"]


ToolChoice = Annotated[FreeChoice | NamedChoice | NoChoice, Field(discriminator="type")]


def _has_tools_of_its_own(model: AiModel) -> bool:
    return load_protocol(model.provider.protocol).capabilities.has_messages_params


def parse_tools(
    tools: Sequence[Mapping[str, object]], model: AiModel, used_tools: Collection[str] = ()
) -> tuple[list[dict[str, Any]], list[str], set[str]]:
    """Return the definitions, what was left out, and the names of the tools that were.

    Tools with `defer_loading` are held back until they are among `used_tools`, since another tool
    of the client searches for them. Where there is none, or a provider's server would search, all
    are offered at once.
    """
    definitions: list[dict[str, Any]] = []
    left_out: list[str] = []
    names: set[str] = set()
    has_search = _has_search(tools)
    for path, tool in iterate_objects(tools, "tools"):
        type = str(tool.get("type") or "custom")
        handling = find_handling("messages.tools", type)
        if handling is Handling.AS_FUNCTION:
            definitions.append(build_client_tool(drop_date(type), KnownTool.parse(tool, path).name))
        elif handling is Handling.PASSED_ON and _has_tools_of_its_own(model):
            name = KnownTool.parse(tool, path).name
            definitions.append({"name": name, "parameters": {}, "native": dict(tool)})
        elif handling is not Handling.CARRIED:
            left_out.append(f"tools.{type[:64]}")
            names.add(str(tool.get("name")))
        else:
            if is_unknown_mark(tool.get("cache_control")):
                left_out.append("tools.cache_control")
                tool = {**tool, "cache_control": None}
            definition = MessageTool.parse(tool, path).build_definition()
            is_deferred = bool(tool.get("defer_loading"))
            if is_deferred and not has_search:
                left_out.append("tools.defer_loading")
            if not (is_deferred and has_search) or definition["name"] in used_tools:
                definitions.append(definition)
    return definitions, left_out, names


def _has_search(tools: Sequence[Mapping[str, object]]) -> bool:
    """Return True if a tool of the client can search for the others."""
    types = [str(tool.get("type") or "custom") for tool in tools]
    if any(type.startswith(SERVER_SEARCH) for type in types):
        return False
    own_tools = (tool for tool, type in zip(tools, types, strict=True) if type == "custom")
    return any(not tool.get("defer_loading") for tool in own_tools)

"""The tools of a request, and which of them the model may call."""

from collections.abc import Mapping
from typing import Any

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.content_parts import require_object
from chatcore.contrib.compat.messages.content_blocks import parse_cache_control

CHOICE_TYPES = ("auto", "any", "tool", "none")


def parse_tool_choice(value: Any) -> dict[str, Any] | None:
    """Return the choice in the words of this protocol; None where the client makes none."""
    if value is None:
        return None
    choice = require_object(value, "tool_choice")
    type = choice.get("type")
    if type not in CHOICE_TYPES:
        raise InvalidFieldError("tool_choice.type", f"One of {', '.join(CHOICE_TYPES)}.")
    parsed_choice: dict[str, Any] = {"type": type}
    if type == "tool":
        if not isinstance(choice.get("name"), str):
            raise InvalidFieldError("tool_choice.name", "The name of a tool.")
        parsed_choice["name"] = choice["name"]
    is_single = choice.get("disable_parallel_tool_use") or False
    if not isinstance(is_single, bool):
        raise InvalidFieldError("tool_choice.disable_parallel_tool_use", "Either true or false.")
    if is_single and type != "none":
        parsed_choice["disable_parallel_tool_use"] = True
    return parsed_choice


def parse_tool(item: Any, path: str) -> dict[str, Any]:
    tool = require_object(item, path)
    if tool.get("type") not in (None, "custom"):
        detail = f"Tools of the type {tool['type']!r} run elsewhere; define it with a schema."
        raise InvalidFieldError(f"{path}.type", detail)
    name, description, strict = (tool.get(key) for key in ("name", "description", "strict"))
    if not isinstance(name, str):
        raise InvalidFieldError(f"{path}.name", "A text.")
    if description is not None and not isinstance(description, str):
        raise InvalidFieldError(f"{path}.description", "A text.")
    if strict is not None and not isinstance(strict, bool):
        raise InvalidFieldError(f"{path}.strict", "Either true or false.")
    schema = tool.get("input_schema")
    if not isinstance(schema, Mapping):
        raise InvalidFieldError(f"{path}.input_schema", "The JSON schema of an object.")
    # An empty list of properties may be left out, or null.
    parameters = {key: part for key, part in schema.items() if part is not None}
    return {
        "name": name,
        "description": description,
        "parameters": parameters,
        "strict": bool(strict),
        "cache_control": parse_cache_control(tool, path),
    }

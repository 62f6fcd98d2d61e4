"""Reading the arguments a model wrote: JSON text, perhaps broken, against the schema its tool declares."""

import json
from typing import Any

from chatcore.tools.base import ToolError

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def parse_arguments(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The arguments as a mapping that matches `schema`, defaults filled in. Raises ToolError saying what to write instead.

    Knows the part of JSON Schema that the built-in tools use: flat objects of scalars with enum, bounds and lengths.
    """
    try:
        values = json.loads(text.strip() or "{}")
    except (ValueError, RecursionError):
        raise ToolError("The arguments are not valid JSON. Send one JSON object.") from None
    if not isinstance(values, dict):
        raise ToolError("The arguments must be one JSON object.")
    properties: dict[str, Any] = schema.get("properties", {})
    if unknown_names := sorted(values.keys() - properties.keys()):
        raise ToolError(
            f"Unknown argument {unknown_names[0]!r}. Known: {', '.join(properties) or 'none'}."
        )
    if missing_names := [name for name in schema.get("required", ()) if name not in values]:
        raise ToolError(f"The argument {missing_names[0]!r} is missing.")
    for name, value in values.items():
        _check_value(name, value, properties[name])
    return {
        name: rule["default"] for name, rule in properties.items() if "default" in rule
    } | values


def _check_value(name: str, value: Any, rule: dict[str, Any]) -> None:
    if not isinstance(value, _TYPES[rule["type"]]) or (
        isinstance(value, bool) and rule["type"] != "boolean"
    ):
        raise ToolError(f"The argument {name!r} must be of type {rule['type']}.")
    if "enum" in rule and value not in rule["enum"]:
        raise ToolError(
            f"The argument {name!r} must be one of {', '.join(map(str, rule['enum']))}."
        )
    if len(str(value)) < rule.get("minLength", 0):
        raise ToolError(f"The argument {name!r} is empty.")
    if "maxLength" in rule and len(str(value)) > rule["maxLength"]:
        raise ToolError(f"The argument {name!r} has more than {rule['maxLength']} characters.")
    if ("minimum" in rule and value < rule["minimum"]) or (
        "maximum" in rule and value > rule["maximum"]
    ):
        raise ToolError(
            f"The argument {name!r} must be between {rule['minimum']} and {rule['maximum']}."
        )

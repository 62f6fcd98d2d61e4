"""Read the arguments that a model wrote for a tool, and check them against the tool's schema."""

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import ValidationError
from jsonschema.exceptions import best_match

from chatcore.base.json_schema import Validator
from chatcore.tools.base import ToolError


def parse_arguments(text: str, schema: dict[str, Any]) -> dict[str, object]:
    """Return the JSON object in `text`, with the schema's defaults for missing arguments.

    Raises ToolError with a sentence for the model: it names the argument and what to send instead.
    """
    try:
        values = json.loads(text.strip() or "{}")
    except (ValueError, RecursionError):
        raise ToolError("The arguments are not valid JSON. Send one JSON object.") from None
    if not isinstance(values, dict):
        raise ToolError("The arguments must be one JSON object.")
    error = best_match(Validator(schema).iter_errors(values))
    if error is not None:
        raise ToolError(_describe_error(error, values, schema))
    properties: dict[str, Any] = schema.get("properties", {})
    defaults = {name: rule["default"] for name, rule in properties.items() if "default" in rule}
    return defaults | values


def _describe_error(
    error: ValidationError, values: Mapping[str, object], schema: Mapping[str, Any]
) -> str:
    # The library's own message repeats the value, which may be very long. These sentences repeat
    # only what the schema says, and names of arguments.
    limit: Any = error.validator_value
    properties: Mapping[str, object] = schema.get("properties", {})
    if error.validator == "additionalProperties" and not error.path:
        unknown_name = min(values.keys() - properties.keys())
        known_names = ", ".join(properties) or "none"
        return f"Unknown argument {unknown_name[:80]!r}. Known: {known_names}."
    if error.validator == "required" and not error.path:
        missing_name = next(name for name in limit if name not in values)
        return f"The argument {missing_name!r} is missing."
    return f"The argument {error.json_path.removeprefix('$.')!r} {_describe_rule(error, limit)}."


def _describe_rule(error: ValidationError, limit: Any) -> str:
    rule: Mapping[str, object] = error.schema if isinstance(error.schema, Mapping) else {}
    match error.validator:
        case "type":
            return f"must be of type {limit}"
        case "enum":
            return f"must be one of {', '.join(map(str, limit))}"
        case "minLength":
            return "is empty" if limit == 1 else f"has fewer than {limit} characters"
        case "maxLength":
            return f"has more than {limit} characters"
        case "minimum" | "maximum" if "minimum" in rule and "maximum" in rule:
            return f"must be between {rule['minimum']} and {rule['maximum']}"
        case "minimum":
            return f"must be at least {limit}"
        case "maximum":
            return f"must be at most {limit}"
    return f"does not match the rule {error.validator!r} of its schema"

"""What may be said to a language model beside the messages: the parameters that every provider knows are checked here."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatcore.rest.fields import MAX_INTEGER, JsonObjectField

MAX_STOPS = 16
MAX_STOP_CHARS = 1000  # characters
RESERVED_PARAMS = frozenset(
    {"model", "messages", "system", "stream", "stream_options", "tools", "functions"}
)  # a request says these itself


def _build_number_rule(
    low: float, high: float
) -> tuple[Callable[[Any], bool], str, dict[str, Any]]:
    def is_valid(value: Any) -> bool:
        return (
            isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
        )

    return (
        is_valid,
        f"A number from {low:g} to {high:g}.",
        {"type": ["number", "null"], "minimum": low, "maximum": high},
    )


def _build_integer_rule(low: int, high: int) -> tuple[Callable[[Any], bool], str, dict[str, Any]]:
    def is_valid(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    return (
        is_valid,
        f"A whole number from {low} to {high}.",
        {"type": ["integer", "null"], "minimum": low, "maximum": high},
    )


def _is_valid_stop(value: Any) -> bool:
    texts = [value] if isinstance(value, str) else value
    return (
        isinstance(texts, list)
        and len(texts) <= MAX_STOPS
        and all(isinstance(text, str) and 0 < len(text) <= MAX_STOP_CHARS for text in texts)
    )


_STOP_SCHEMA = {"type": "string", "minLength": 1, "maxLength": MAX_STOP_CHARS}
PARAM_RULES: dict[str, tuple[Callable[[Any], bool], str, dict[str, Any]]] = {
    "temperature": _build_number_rule(0, 2),
    "top_p": _build_number_rule(0, 1),
    "presence_penalty": _build_number_rule(-2, 2),
    "frequency_penalty": _build_number_rule(-2, 2),
    "max_tokens": _build_integer_rule(1, MAX_INTEGER),
    "top_k": _build_integer_rule(0, MAX_INTEGER),
    "seed": _build_integer_rule(-(2**63), 2**63 - 1),
    "n": _build_integer_rule(1, 1),
    "stop": (
        _is_valid_stop,
        f"A text, or a list of at most {MAX_STOPS}.",
        {
            "anyOf": [
                _STOP_SCHEMA,
                {"type": "array", "items": _STOP_SCHEMA, "maxItems": MAX_STOPS},
                {"type": "null"},
            ]
        },
    ),
}


@extend_schema_field(
    {
        "type": "object",
        "properties": {name: schema for name, (_, _, schema) in PARAM_RULES.items()},
        "propertyNames": {"not": {"enum": sorted(RESERVED_PARAMS)}},
        "additionalProperties": True,
        "description": "Sent to the provider beside the messages; what is not listed here is the provider's to judge.",
    }
)
class ParamsField(JsonObjectField):
    """What is sent to the provider beside the messages."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse by its name what no provider takes. A null is no parameter."""
        params = {
            name: value
            for name, value in super().to_internal_value(data).items()
            if value is not None
        }
        errors = {
            name: [detail]
            for name, (is_valid, detail, _) in PARAM_RULES.items()
            if name in params and not is_valid(params[name])
        }
        errors |= {
            name: ["A request says this itself."] for name in params if name in RESERVED_PARAMS
        }
        if errors:
            raise serializers.ValidationError(errors)
        return params

"""Parameters for the language model: those that every provider knows are checked here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatcore.rest.fields import MAX_INTEGER, JsonObjectField

MAX_STOPS = 16
MAX_STOP_CHARS = 1000
# A request has fields of its own for these.
RESERVED_PARAMS = frozenset(
    {"model", "messages", "system", "stream", "stream_options", "tools", "functions"}
)


@dataclass(frozen=True)
class ParamRule:
    """The values that one parameter may have, with their JSON schema."""

    is_valid: Callable[[Any], bool]
    error_detail: str
    schema: dict[str, Any]


def _build_number_rule(low: float, high: float) -> ParamRule:
    def is_valid(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and low <= value <= high

    schema = {"type": ["number", "null"], "minimum": low, "maximum": high}
    return ParamRule(is_valid, f"A number from {low:g} to {high:g}.", schema)


def _build_integer_rule(low: int, high: int) -> ParamRule:
    def is_valid(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    schema = {"type": ["integer", "null"], "minimum": low, "maximum": high}
    return ParamRule(is_valid, f"A whole number from {low} to {high}.", schema)


def _build_stop_rule() -> ParamRule:
    def is_valid(value: Any) -> bool:
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or len(texts) > MAX_STOPS:
            return False
        return all(isinstance(text, str) and 0 < len(text) <= MAX_STOP_CHARS for text in texts)

    text_schema = {"type": "string", "minLength": 1, "maxLength": MAX_STOP_CHARS}
    list_schema = {"type": "array", "items": text_schema, "maxItems": MAX_STOPS}
    schema = {"anyOf": [text_schema, list_schema, {"type": "null"}]}
    return ParamRule(is_valid, f"A text, or a list of at most {MAX_STOPS}.", schema)


PARAM_RULES = {
    "temperature": _build_number_rule(0, 2),
    "top_p": _build_number_rule(0, 1),
    "presence_penalty": _build_number_rule(-2, 2),
    "frequency_penalty": _build_number_rule(-2, 2),
    "max_tokens": _build_integer_rule(1, MAX_INTEGER),
    "top_k": _build_integer_rule(0, MAX_INTEGER),
    "seed": _build_integer_rule(-(2**63), 2**63 - 1),
    "n": _build_integer_rule(1, 1),
    "stop": _build_stop_rule(),
}


@extend_schema_field(
    {
        "type": "object",
        "properties": {name: rule.schema for name, rule in PARAM_RULES.items()},
        "propertyNames": {"not": {"enum": sorted(RESERVED_PARAMS)}},
        "additionalProperties": True,
        "description": (
            "Parameters for the language model. The provider checks those not listed here."
        ),
    }
)
class ParamsField(JsonObjectField):
    """Parameters that are sent to the provider with the messages."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return the parameters without nulls. Raises ValidationError that names the wrong ones."""
        values = super().to_internal_value(data)
        params = {name: value for name, value in values.items() if value is not None}
        errors = {}
        for name, value in params.items():
            rule = PARAM_RULES.get(name)
            if name in RESERVED_PARAMS:
                errors[name] = ["The request has a field of its own for this."]
            elif rule is not None and not rule.is_valid(value):
                errors[name] = [rule.error_detail]
        if errors:
            raise serializers.ValidationError(errors)
        return params

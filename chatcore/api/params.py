"""What may be said to a language model beside the messages: the parameters that every provider knows are checked here."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chatcore.rest.fields import BIGGEST_INTEGER, Object

MAX_STOPS = 16
LONGEST_STOP = 1000  # characters
OURS = frozenset(
    {"model", "messages", "system", "stream", "stream_options", "tools", "functions"}
)  # a request says these itself


def _number(low: float, high: float) -> tuple[Callable[[Any], bool], str, dict[str, Any]]:
    def fits(value: Any) -> bool:
        return (
            isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
        )

    return (
        fits,
        f"A number from {low:g} to {high:g}.",
        {"type": ["number", "null"], "minimum": low, "maximum": high},
    )


def _whole(low: int, high: int) -> tuple[Callable[[Any], bool], str, dict[str, Any]]:
    def fits(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    return (
        fits,
        f"A whole number from {low} to {high}.",
        {"type": ["integer", "null"], "minimum": low, "maximum": high},
    )


def _stops(value: Any) -> bool:
    texts = [value] if isinstance(value, str) else value
    return (
        isinstance(texts, list)
        and len(texts) <= MAX_STOPS
        and all(isinstance(t, str) and 0 < len(t) <= LONGEST_STOP for t in texts)
    )


_STOP = {"type": "string", "minLength": 1, "maxLength": LONGEST_STOP}
KNOWN: dict[str, tuple[Callable[[Any], bool], str, dict[str, Any]]] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "max_tokens": _whole(1, BIGGEST_INTEGER),
    "top_k": _whole(0, BIGGEST_INTEGER),
    "seed": _whole(-(2**63), 2**63 - 1),
    "n": _whole(1, 1),
    "stop": (
        _stops,
        f"A text, or a list of at most {MAX_STOPS}.",
        {
            "anyOf": [
                _STOP,
                {"type": "array", "items": _STOP, "maxItems": MAX_STOPS},
                {"type": "null"},
            ]
        },
    ),
}


@extend_schema_field(
    {
        "type": "object",
        "properties": {name: schema for name, (_, _, schema) in KNOWN.items()},
        "propertyNames": {"not": {"enum": sorted(OURS)}},
        "additionalProperties": True,
        "description": "Sent to the provider beside the messages; what is not listed here is the provider's to judge.",
    }
)
class Params(Object):
    """What is sent to the provider beside the messages."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse by its name what no provider takes. A null is no parameter."""
        params = {
            name: value
            for name, value in super().to_internal_value(data).items()
            if value is not None
        }
        wrong = {
            name: [sentence]
            for name, (fits, sentence, _) in KNOWN.items()
            if name in params and not fits(params[name])
        }
        wrong |= {name: ["A request says this itself."] for name in params if name in OURS}
        if wrong:
            raise serializers.ValidationError(wrong)
        return params

"""Strict fields: a value is used as it was sent, or refused with the name of its field."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from chatcore.base.rest import limits
from chatcore.base.rest.problems import TooLargeProblem

BODY_RULE = "x-rule-"  # begins the name of a rule until `schema.apply_body_rules` puts it in place
MAX_INTEGER = 2**31 - 1  # the largest value that an integer column holds on both databases


# For the OpenAPI document: a text that is trimmed must have something besides spaces.
HAS_WORDS = RegexValidator(r"\S")
Serializer = TypeVar("Serializer", bound=type[serializers.BaseSerializer[Any]])


def body_rules(**rules: object) -> Callable[[Serializer], Serializer]:
    """Give a body rules of the OpenAPI document; no other fields than its own is always one."""
    rules = {"additionalProperties": False, **rules}
    extensions = {f"{BODY_RULE}{name}": rule for name, rule in rules.items()}
    decorator: Callable[[Serializer], Serializer] = extend_schema_serializer(extensions=extensions)
    return decorator


class StrictTextField(serializers.CharField):
    """Text, unchanged: numbers are refused, and spaces around it stay.

    `max_bytes` limits its size in UTF-8 (413 above it, with `way_out` as advice). With
    `trim_whitespace=True` the spaces around it are removed.
    """

    def __init__(self, *, max_bytes: int | None = None, way_out: str = "", **kwargs: Any) -> None:
        kwargs.setdefault("trim_whitespace", False)
        if not kwargs.get("allow_blank"):
            kwargs.setdefault("min_length", 1)  # for the OpenAPI document
        super().__init__(**kwargs)
        if self.trim_whitespace and not self.allow_blank:
            self.validators.insert(0, HAS_WORDS)
        self.max_bytes = max_bytes
        self.way_out = way_out

    def to_internal_value(self, data: object) -> str:
        """Return the text. Raises ValidationError for any other type, and TooLargeProblem."""
        if not isinstance(data, str):
            self.fail("invalid")
        if self.max_bytes is not None and limits.exceeds_bytes(data, self.max_bytes):
            kilobytes = self.max_bytes // limits.KB
            detail = f"{self.field_name} is longer than {kilobytes} KB of text. {self.way_out}"
            raise TooLargeProblem(detail.rstrip())
        return data.strip() if self.trim_whitespace else data


class StrictBooleanField(serializers.BooleanField):
    """true or false; 1 and "yes" are refused."""

    def to_internal_value(self, data: object) -> bool:
        """Return the boolean. Raises ValidationError for any other type."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class StrictIntegerField(serializers.IntegerField):
    """An integer that a database column can hold."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_value", MAX_INTEGER)
        super().__init__(**kwargs)

    def to_internal_value(self, data: object) -> int:
        """Return the integer. Raises ValidationError for any other type, booleans included."""
        # In Python a bool is an int.
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class RatioField(serializers.FloatField):
    """A number from 0 to 1."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": 1} | kwargs)

    def to_internal_value(self, data: object) -> float:
        """Return the number. Raises ValidationError for any other type, booleans included."""
        if not isinstance(data, int | float) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class JsonObjectField(serializers.DictField):
    """A JSON object with any content."""


@body_rules()
class StrictSerializer(serializers.Serializer[Any]):
    """A request body whose unknown and read-only fields are refused by name."""

    def to_internal_value(self, data: object) -> Any:
        """Return the validated fields. Raises ValidationError that names every refused field."""
        if isinstance(data, Mapping):
            errors = {
                name: [detail] for name in data if (detail := self._explain_refusal(name)) != ""
            }
            if errors:
                raise serializers.ValidationError(errors)
        return super().to_internal_value(data)

    def _explain_refusal(self, name: str) -> str:
        """Return why a client may not send this field; empty if it may."""
        field = self.fields.get(name)
        if field is None:
            return "There is no such field."
        return "This field cannot be written." if field.read_only else ""

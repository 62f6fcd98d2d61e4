"""Strict fields: a value is taken as what it is or refused by name; nothing is coerced, nothing unknown passes."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from chatcore.rest.problems import TooLargeProblem

MAX_INTEGER = 2**31 - 1  # what both databases hold in such a column


class StrictTextField(serializers.CharField):
    """Text exactly as it was sent: no number becomes one, no space is lost. `max_bytes` of UTF-8, or it is 413."""

    def __init__(self, *, max_bytes: int | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("trim_whitespace", False)
        if not kwargs.get("allow_blank"):
            kwargs.setdefault("min_length", 1)  # for the OpenAPI document
        super().__init__(**kwargs)
        self.max_bytes = max_bytes

    def to_internal_value(self, data: Any) -> str:
        """Only a string."""
        if not isinstance(data, str):
            self.fail("invalid")
        if (
            self.max_bytes is not None
            and len(data) * 4 > self.max_bytes
            and len(data.encode()) > self.max_bytes
        ):
            raise TooLargeProblem(
                f"{self.field_name} is longer than {self.max_bytes // 1024} KB of text."
            )
        return data


class StrictBooleanField(serializers.BooleanField):
    """true or false; neither 1 nor "yes"."""

    def to_internal_value(self, data: Any) -> bool:
        """Only a boolean."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class StrictIntegerField(serializers.IntegerField):
    """A whole number that a column can hold."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_value", MAX_INTEGER)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> int:
        """Only a number, and not a boolean, which Python takes for one."""
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class RatioField(serializers.FloatField):
    """A share of something, 0 to 1."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": 1} | kwargs)

    def to_internal_value(self, data: Any) -> float:
        """Only a number."""
        if not isinstance(data, int | float) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class JsonObjectField(serializers.DictField):
    """A JSON object, whatever is in it."""


class StrictSerializer(serializers.Serializer[Any]):
    """For request bodies: a field that is not known, or not to be written, is refused by its name."""

    closed = True  # additionalProperties: false

    def to_internal_value(self, data: Any) -> Any:
        """Refuse before anything is read."""
        if isinstance(data, Mapping):
            writable = {name for name, field in self.fields.items() if not field.read_only}
            errors = {name: [self._explain_refusal(name)] for name in data if name not in writable}
            if errors:
                raise serializers.ValidationError(errors)
        return super().to_internal_value(data)

    def _explain_refusal(self, name: str) -> str:
        return "This field cannot be written." if name in self.fields else "There is no such field."

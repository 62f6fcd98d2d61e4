"""Strict fields: a value is taken as what it is or refused by name; nothing is coerced, nothing unknown passes."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from chatcore.rest.problems import TooLarge

BIGGEST_INTEGER = 2**31 - 1  # what both databases hold in such a column


class Text(serializers.CharField):
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
            raise TooLarge(f"{self.field_name} is longer than {self.max_bytes // 1024} KB of text.")
        return data


class Flag(serializers.BooleanField):
    """true or false; neither 1 nor "yes"."""

    def to_internal_value(self, data: Any) -> bool:
        """Only a boolean."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Integer(serializers.IntegerField):
    """A whole number that a column can hold."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_value", BIGGEST_INTEGER)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> int:
        """Only a number, and not a boolean, which Python takes for one."""
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class Share(serializers.FloatField):
    """A share of something, 0 to 1."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": 1} | kwargs)

    def to_internal_value(self, data: Any) -> float:
        """Only a number."""
        if not isinstance(data, int | float) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class Object(serializers.DictField):
    """A JSON object, whatever is in it."""


class Strict(serializers.Serializer[Any]):
    """For request bodies: a field that is not known, or not to be written, is refused by its name."""

    closed = True  # additionalProperties: false

    def to_internal_value(self, data: Any) -> Any:
        """Refuse before anything is read."""
        if isinstance(data, Mapping):
            writable = {name for name, field in self.fields.items() if not field.read_only}
            wrong = {name: [self._why_not(name)] for name in data if name not in writable}
            if wrong:
                raise serializers.ValidationError(wrong)
        return super().to_internal_value(data)

    def _why_not(self, name: str) -> str:
        return "This field cannot be written." if name in self.fields else "There is no such field."

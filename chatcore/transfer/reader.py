"""Validate parsed JSON and build messages from it; an error names the path of the bad value."""

import json
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, TypeGuard, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Field, Model

from chatcore.base.truncation import clean_json, clean_text
from chatcore.models import Message

# The limit for texts of people and models, in UTF-8. Tool results are cut when they are stored.
MAX_MESSAGE_BYTES = 256 * 1024

SectionT = TypeVar("SectionT", list[Any], dict[str, Any])


class InvalidImport(Exception):
    """A value that cannot be imported; `field` is its path, such as `messages[3].role`."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


class MessageTooLong(InvalidImport):
    """A message with more than MAX_MESSAGE_BYTES of text."""


def read_messages(
    items: object,
    *,
    extra_fields: Collection[str] = (),
    load_call_ids: Callable[[], Collection[str]] = frozenset[str],
) -> list[Message]:
    """Return unsaved messages, in order. Raises InvalidImport.

    A tool's result must follow the call that it answers; `load_call_ids` returns the ids of calls
    that are stored already, and is called only when one is needed. `extra_fields` names further
    columns of Message that are imported.
    """
    if not isinstance(items, list):
        raise InvalidImport("messages", "It must be a list of messages.")
    call_ids: set[str] = set()
    rows = []
    has_stored_ids = False
    for index, item in enumerate(items):
        row = _MessageReader(f"messages[{index}]", item, extra_fields).read_message()
        if row.role == Message.Role.TOOL:
            if row.tool_call_id not in call_ids and not has_stored_ids:
                call_ids.update(load_call_ids())
                has_stored_ids = True
            if row.tool_call_id not in call_ids:
                raise InvalidImport(
                    f"messages[{index}].tool_call_id", "No call before this result has this id."
                )
        call_ids.update(call["id"] for call in row.tool_calls)
        rows.append(row)
    return rows


def read_column_values(
    model: type[Model], data: Mapping[str, object], names: Collection[str], path: str
) -> dict[str, Any]:
    """Return the values that `data` has for these columns, validated. Raises InvalidImport."""
    values = {}
    for name in names:
        if name not in data:
            continue
        field = model._meta.get_field(name)
        assert isinstance(field, Field)
        try:
            values[name] = field.clean(clean_json(data[name]), None)
        except ValidationError as error:
            raise InvalidImport(f"{path}.{name}", " ".join(error.messages)) from None
    return values


def read_section(export_data: Mapping[str, object], name: str, kind: type[SectionT]) -> SectionT:
    """Return a list or an object of an export; an empty one if missing. Raises InvalidImport."""
    section = export_data.get(name, kind())
    if not isinstance(section, kind):
        form = "a list" if kind is list else "an object"
        raise InvalidImport(name, f"It must be {form}.")
    return section


def is_number(value: object) -> TypeGuard[int]:
    """Return True for an integer. True and False, which Python counts as integers, are none."""
    return isinstance(value, int) and not isinstance(value, bool)


class _MessageReader:
    """The reader of one message; each method reads or checks a part and raises InvalidImport."""

    def __init__(self, path: str, item: object, extra_fields: Collection[str]) -> None:
        self.path = path
        if not isinstance(item, Mapping):
            raise InvalidImport(path, "It must be an object.")
        self.item = item
        self.extra_fields = extra_fields

    def read_message(self) -> Message:
        unknown_fields = sorted(set(self.item) - FIELD_READERS.keys() - set(self.extra_fields))
        if unknown_fields:
            raise self.build_error(unknown_fields[0], "There is no such field.")
        role = self.read_role()
        row = Message(
            role=role, **read_column_values(Message, self.item, self.extra_fields, self.path)
        )
        for name, read_value in FIELD_READERS.items():
            if name in self.item and name != "role":
                setattr(row, name, read_value(self, name))
        self.check_stored_fields(row)
        if row.status == Message.Status.STREAMING:
            row.status = Message.Status.INTERRUPTED
        self.check_consistency(row)
        return row

    def read_role(self) -> str:
        if self.item.get("role") not in Message.Role.values:
            raise self.build_error("role", f"It must be one of {', '.join(Message.Role.values)}.")
        return str(self.item["role"])

    def read_text(self, name: str) -> str:
        value = self.item[name]
        # OpenAI writes null as the content of a message that only calls tools.
        if value is None and name == "content":
            return ""
        if not isinstance(value, str):
            raise self.build_error(name, "It must be a text.")
        return clean_text(value)

    def read_short_text(self, name: str) -> str:
        value = self.read_text(name)
        limit = getattr(Message._meta.get_field(name), "max_length", 0)
        if len(value) > limit:
            raise self.build_error(name, f"It has more than {limit} characters.")
        return value

    def read_flag(self, name: str) -> bool:
        if not isinstance(self.item[name], bool):
            raise self.build_error(name, "It must be true or false.")
        return bool(self.item[name])

    def read_datetime(self, name: str) -> datetime:
        try:
            value = datetime.fromisoformat(self.item[name])
            if value.tzinfo is None:
                return value.replace(tzinfo=UTC)
            return value.astimezone(UTC)
        except (TypeError, ValueError, OverflowError):
            raise self.build_error(name, "It must be a date and time in ISO 8601.") from None

    def read_calls(self, name: str) -> list[dict[str, str]]:
        if not isinstance(self.item[name], list):
            raise self.build_error(name, "It must be a list of calls.")
        return [
            self.read_call(f"{name}[{index}]", call) for index, call in enumerate(self.item[name])
        ]

    def read_call(self, name: str, call: object) -> dict[str, str]:
        if not isinstance(call, Mapping) or set(call) != {"id", "name", "arguments"}:
            raise self.build_error(name, "It must be an object with id, name and arguments.")
        arguments = call["arguments"]
        if isinstance(arguments, Mapping):  # Anthropic writes an object, OpenAI its JSON text
            arguments = json.dumps(arguments, ensure_ascii=False)
        texts = {"id": call["id"], "name": call["name"], "arguments": arguments}
        for part, value in texts.items():
            if not isinstance(value, str) or (not value and part != "arguments"):
                raise self.build_error(f"{name}.{part}", "It must be a text.")
        return {part: clean_text(value) for part, value in texts.items()}

    def check_stored_fields(self, row: Message) -> None:
        """Check columns of an export that no other method reads."""
        if (row.tool_result_limit or 0) > MAX_MESSAGE_BYTES:
            raise self.build_error(
                "tool_result_limit", f"It must be at most {MAX_MESSAGE_BYTES:,}."
            )

    def check_consistency(self, row: Message) -> None:
        is_tool_result = row.role == Message.Role.TOOL
        if row.tool_calls and row.role != Message.Role.ASSISTANT:
            raise self.build_error("tool_calls", "Only an assistant calls tools.")
        if is_tool_result and not row.tool_call_id:
            raise self.build_error("tool_call_id", "A tool's result must name its call.")
        if not is_tool_result and row.tool_call_id:
            raise self.build_error("tool_call_id", "Only a tool's result answers a call.")
        is_empty = not row.content and not row.tool_calls
        if is_empty and not is_tool_result and row.status == Message.Status.COMPLETE:
            raise self.build_error("content", "The message is empty.")
        if not is_tool_result and len(row.content.encode()) > MAX_MESSAGE_BYTES:
            raise MessageTooLong(
                f"{self.path}.content",
                f"A message has at most {MAX_MESSAGE_BYTES // 1024} KB of text.",
            )

    def build_error(self, name: str, detail: str) -> InvalidImport:
        return InvalidImport(f"{self.path}.{name}", detail)


FIELD_READERS: dict[str, Callable[[_MessageReader, str], object]] = {
    "role": _MessageReader.read_text,
    "content": _MessageReader.read_text,
    "tool_calls": _MessageReader.read_calls,
    "tool_call_id": _MessageReader.read_short_text,
    "tool_name": _MessageReader.read_short_text,
    "is_error": _MessageReader.read_flag,
    "created_at": _MessageReader.read_datetime,
}

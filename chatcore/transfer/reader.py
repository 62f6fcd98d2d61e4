"""From parsed JSON to messages that can be stored; whatever cannot be read is named by its path."""

import json
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, TypeGuard

from django.core.exceptions import ValidationError
from django.db.models import Field, Model

from chatcore.models import Message
from chatcore.sessions.truncation import clean_text, cleaned

MAX_MESSAGE_BYTES = (
    256 * 1024
)  # of what people and models say; tool results are cut when they are stored


class NotImportable(Exception):
    """A value that cannot be taken; `field` is its path, as in messages[3].role."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


class TooLong(NotImportable):
    """A message over the limit."""


def read_messages(
    items: Any,
    *,
    also: Collection[str] = (),
    known_calls: Callable[[], Collection[str]] = frozenset[str],
) -> list[Message]:
    """Unsaved messages, in order. A tool's result must follow the call it answers, here or in `known_calls`.

    `also` names further fields of Message that are taken as they are. Raises NotImportable.
    """
    if not isinstance(items, list):
        raise NotImportable("messages", "A list of messages.")
    calls: set[str] = set()
    rows = []
    earlier: Collection[str] | None = None
    for index, item in enumerate(items):
        row = _Reader(f"messages[{index}]", item, also).message()
        if row.role == Message.Role.TOOL and row.tool_call_id not in calls:
            earlier = known_calls() if earlier is None else earlier
            if row.tool_call_id not in earlier:
                raise NotImportable(
                    f"messages[{index}].tool_call_id", "No call before it has this id."
                )
        calls.update(call["id"] for call in row.tool_calls)
        rows.append(row)
    return rows


def column_values(
    model: type[Model], given: Mapping[str, Any], names: Collection[str], path: str
) -> dict[str, Any]:
    """The values of these columns that are given, checked as the columns check them. Raises NotImportable."""
    values = {}
    for name in names:
        if name in given:
            field = model._meta.get_field(name)
            assert isinstance(field, Field)
            try:
                values[name] = field.clean(cleaned(given[name]), None)
            except ValidationError as error:
                raise NotImportable(f"{path}.{name}", " ".join(error.messages)) from None
    return values


def part(exported: Mapping[str, Any], name: str, kind: Callable[[], Any]) -> Any:
    """A list or an object of an export, empty where it is missing. Raises NotImportable."""
    part = exported.get(name, kind())
    if not isinstance(part, type(kind())):
        raise NotImportable(name, "It has not the form that an export has.")
    return part


def is_number(value: Any) -> TypeGuard[int]:
    """Whether it can be the number of a message; True and False, which Python takes for numbers, cannot."""
    return isinstance(value, int) and not isinstance(value, bool)


class _Reader:
    """One message."""

    def __init__(self, path: str, item: Any, also: Collection[str]) -> None:
        self.path = path
        if not isinstance(item, Mapping):
            raise NotImportable(path, "An object.")
        self.item = item
        self.also = also

    def message(self) -> Message:
        unknown = sorted(set(self.item) - FIELDS.keys() - set(self.also))
        if unknown:
            raise self.wrong(unknown[0], "There is no such field.")
        role = self.role()
        row = Message(role=role, **column_values(Message, self.item, self.also, self.path))
        for name, read in FIELDS.items():
            if name in self.item and name != "role":
                setattr(row, name, read(self, name))
        self.takes_what_is_kept(row)
        if row.status == Message.Status.STREAMING:
            row.status = Message.Status.INTERRUPTED
        self.fits_together(row)
        return row

    def role(self) -> str:
        if self.item.get("role") not in Message.Role.values:
            raise self.wrong("role", f"One of {', '.join(Message.Role.values)}.")
        return str(self.item["role"])

    def text(self, name: str) -> str:
        value = self.item[name]
        if value is None and name == "content":  # as OpenAI writes a message that only calls tools
            return ""
        if not isinstance(value, str):
            raise self.wrong(name, "A text.")
        return clean_text(value)

    def short(self, name: str) -> str:
        value = self.text(name)
        limit = getattr(Message._meta.get_field(name), "max_length", 0)
        if len(value) > limit:
            raise self.wrong(name, f"At most {limit} characters.")
        return value

    def flag(self, name: str) -> bool:
        if not isinstance(self.item[name], bool):
            raise self.wrong(name, "Either true or false.")
        return bool(self.item[name])

    def moment(self, name: str) -> datetime:
        try:
            moment = datetime.fromisoformat(self.item[name])
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (TypeError, ValueError, OverflowError):
            raise self.wrong(name, "A date and time as ISO 8601 writes it.") from None

    def calls(self, name: str) -> list[dict[str, str]]:
        if not isinstance(self.item[name], list):
            raise self.wrong(name, "A list of calls.")
        return [self.call(f"{name}[{index}]", call) for index, call in enumerate(self.item[name])]

    def call(self, name: str, call: Any) -> dict[str, str]:
        if not isinstance(call, Mapping) or set(call) != {"id", "name", "arguments"}:
            raise self.wrong(name, "An object with id, name and arguments.")
        arguments = call["arguments"]
        if isinstance(arguments, Mapping):  # as Anthropic writes them
            arguments = json.dumps(arguments, ensure_ascii=False)
        texts = {"id": call["id"], "name": call["name"], "arguments": arguments}
        for part, value in texts.items():
            if not isinstance(value, str) or (not value and part != "arguments"):
                raise self.wrong(f"{name}.{part}", "A text.")
        return {part: clean_text(value) for part, value in texts.items()}

    def takes_what_is_kept(self, row: Message) -> None:
        """What protocols want back is an object; no tool result is longer than what people and models may say."""
        if not isinstance(row.provider_data, dict):
            raise self.wrong("provider_data", "An object.")
        if (row.tool_result_limit or 0) > MAX_MESSAGE_BYTES:
            raise self.wrong("tool_result_limit", f"At most {MAX_MESSAGE_BYTES:,}.")

    def fits_together(self, row: Message) -> None:
        if row.tool_calls and row.role != Message.Role.ASSISTANT:
            raise self.wrong("tool_calls", "Only an assistant calls tools.")
        if row.role == Message.Role.TOOL and not row.tool_call_id:
            raise self.wrong("tool_call_id", "A tool's result names the call it answers.")
        if row.role != Message.Role.TOOL and row.tool_call_id:
            raise self.wrong("tool_call_id", "Only a tool's result answers a call.")
        if (
            not row.content
            and not row.tool_calls
            and row.role != Message.Role.TOOL
            and row.status == Message.Status.COMPLETE
        ):
            raise self.wrong("content", "It says nothing.")
        if row.role != Message.Role.TOOL and len(row.content.encode()) > MAX_MESSAGE_BYTES:
            raise TooLong(
                f"{self.path}.content",
                f"A message has at most {MAX_MESSAGE_BYTES // 1024} KB of text.",
            )

    def wrong(self, name: str, detail: str) -> NotImportable:
        return NotImportable(f"{self.path}.{name}", detail)


FIELDS: dict[str, Callable[[_Reader, str], Any]] = {
    "role": _Reader.text,
    "content": _Reader.text,
    "tool_calls": _Reader.calls,
    "tool_call_id": _Reader.short,
    "tool_name": _Reader.short,
    "is_error": _Reader.flag,
    "created_at": _Reader.moment,
}

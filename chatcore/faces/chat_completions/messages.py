"""The messages of a request, read: one system text, and what was said, in a form that compares with what is stored."""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chatcore.files import images
from chatcore.files.rendering import IMAGE_UNSUPPORTED_NOTE
from chatcore.providers.base import ChatMessage, Image, ToolCall
from chatcore.rest import limits
from chatcore.rest.problems import InvalidFieldError, TooLargeProblem

_DATA_PREFIX = "data:"
_TEXT_PART_KEYS = {
    "text": "text",
    "refusal": "refusal",
    "input_text": "text",
    "output_text": "text",
}


@dataclass(frozen=True, kw_only=True)
class ClientMessage:
    """One message as the client sent it."""

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    images: tuple[Image, ...] = ()

    @property
    def has_content(self) -> bool:
        """More than nothing at all: empty answers are what clients keep of those that failed."""
        return bool(self.content or self.calls or self.images or self.role == "tool")

    def to_chat_message(self, *, supports_images: bool) -> ChatMessage:
        """As a provider is asked with it; a model that does not see is told that there was an image."""
        placeholders = (
            []
            if supports_images
            else [
                IMAGE_UNSUPPORTED_NOTE.format(name=f"image-{number}")
                for number, _ in enumerate(self.images, start=1)
            ]
        )
        return ChatMessage(
            role=self.role,
            content="\n\n".join(part for part in (self.content, *placeholders) if part),
            tool_calls=self.calls,
            tool_call_id=self.call_id,
            images=self.images if supports_images else (),
        )

    def to_import_record(self) -> dict[str, Any]:
        """As `history.import_messages` reads it."""
        record: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.calls:
            record["tool_calls"] = [
                {"id": call.id, "name": call.name, "arguments": call.arguments}
                for call in self.calls
            ]
        return record | ({"tool_call_id": self.call_id} if self.role == "tool" else {})


def parse_messages(messages: Any) -> tuple[str | None, list[ClientMessage]]:
    """The system text (None: there is none) and what was said, without what says nothing. Raises 400 that names the place, and 413."""
    if not isinstance(messages, list) or not messages:
        raise InvalidFieldError("messages", "A list with at least one message.")
    if len(messages) > limits.IMPORT_MESSAGES:
        raise TooLargeProblem(f"A request has at most {limits.IMPORT_MESSAGES:,} messages.")
    system_texts: list[str] = []
    client_messages: list[ClientMessage] = []
    for index, item in enumerate(messages):
        path = f"messages[{index}]"
        message = _require_object(item, path)
        if message.get("role") in ("system", "developer"):
            system_texts.append(
                _check_length(_parse_content(message.get("content"), path)[0], path)
            )
        else:
            client_messages.append(_parse_message(message, path))
    if not any(entry.has_content for entry in client_messages):
        raise InvalidFieldError("messages", "Nobody says anything in them.")
    return "\n\n".join(system_texts) if system_texts else None, [
        entry for entry in client_messages if entry.has_content
    ]


def _parse_message(message: Mapping[str, Any], path: str) -> ClientMessage:
    role = message.get("role")
    if role not in ("user", "assistant", "tool"):
        raise InvalidFieldError(f"{path}.role", "One of system, developer, user, assistant, tool.")
    text, image_parts = _parse_content(message.get("content"), path)
    if role != "tool":
        _check_length(text, path)
    if role == "assistant":
        text = text or _parse_text(message.get("refusal"), f"{path}.refusal")
        return ClientMessage(
            role=role,
            content=text,
            calls=tuple(_parse_calls(message.get("tool_calls"), f"{path}.tool_calls")),
        )
    if role == "tool":
        return ClientMessage(
            role=role,
            content=text,
            call_id=_parse_text(
                message.get("tool_call_id"), f"{path}.tool_call_id", is_required=True
            ),
        )
    return ClientMessage(role=role, content=text, images=tuple(image_parts))


def _parse_content(content: Any, path: str) -> tuple[str, list[Image]]:
    """The text of a message's content, and its images."""
    path = f"{path}.content"
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise InvalidFieldError(path, "A text, or a list of parts.")
    texts, image_parts = [], []
    for index, item in enumerate(content):
        part_path = f"{path}[{index}]"
        part = _require_object(item, part_path)
        kind = str(part.get("type"))
        if kind == "image_url":
            image_parts.append(_parse_image(part.get("image_url"), f"{part_path}.image_url"))
        elif kind in _TEXT_PART_KEYS:
            texts.append(
                _parse_text(part.get(_TEXT_PART_KEYS[kind]), f"{part_path}.{_TEXT_PART_KEYS[kind]}")
            )
        else:
            raise InvalidFieldError(
                f"{part_path}.type", f"Parts of type {kind!r} cannot be taken here."
            )
    return "\n\n".join(text for text in texts if text), image_parts


def _check_length(text: str, path: str) -> str:
    if len(text) * 4 > limits.MESSAGE_BYTES and len(text.encode()) > limits.MESSAGE_BYTES:
        raise TooLargeProblem(
            f"{path} is longer than {limits.MESSAGE_BYTES // limits.KB} KB of text."
        )
    return text


def _parse_image(value: Any, path: str) -> Image:
    url = value.get("url") if isinstance(value, Mapping) else value
    if not isinstance(url, str) or not url.startswith(_DATA_PREFIX):
        raise InvalidFieldError(
            f"{path}.url",
            "An image is sent here as a data: address, in base64; others are not fetched.",
        )
    head, separator, data = url.partition(",")
    if not separator or not head.endswith(";base64"):
        raise InvalidFieldError(f"{path}.url", "A data: address in base64 is expected.")
    try:
        image_bytes = base64.b64decode(data, validate=True)
        picture = images.identify_image(image_bytes)
    except (binascii.Error, ValueError):
        raise InvalidFieldError(f"{path}.url", "This is not base64.") from None
    except images.BrokenImage as error:
        raise InvalidFieldError(f"{path}.url", str(error)) from None
    if picture is None:
        raise InvalidFieldError(f"{path}.url", "An image is PNG, JPEG, GIF or WebP.")
    return Image(media_type=picture.media_type, data=image_bytes)


def _parse_calls(value: Any, path: str) -> Iterator[ToolCall]:
    if value is None:
        return
    if not isinstance(value, list):
        raise InvalidFieldError(path, "A list of calls.")
    for index, item in enumerate(value):
        call_path = f"{path}[{index}]"
        call = _require_object(item, call_path)
        function = _require_object(call.get("function"), f"{call_path}.function")
        yield ToolCall(
            id=_parse_text(call.get("id"), f"{call_path}.id", is_required=True),
            name=_parse_text(function.get("name"), f"{call_path}.function.name", is_required=True),
            arguments=_parse_text(function.get("arguments"), f"{call_path}.function.arguments"),
        )


def normalize_arguments(arguments: str) -> str:
    """Arguments in a form in which those that are equal as JSON are equal."""
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def get_trailing_results(messages: Sequence[ClientMessage]) -> list[ClientMessage]:
    """The tool results that the last message closes."""
    count = next(
        (index for index, message in enumerate(reversed(messages)) if message.role != "tool"),
        len(messages),
    )
    return list(messages[len(messages) - count :])


def _parse_text(value: Any, path: str, *, is_required: bool = False) -> str:
    if value is None and not is_required:
        return ""
    if not isinstance(value, str) or (is_required and not value):
        raise InvalidFieldError(path, "A text.")
    return value


def _require_object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidFieldError(path, "An object.")
    return value

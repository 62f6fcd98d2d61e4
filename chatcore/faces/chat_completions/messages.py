"""Parse the messages of a request into one system text and messages to compare with stored ones."""

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

DATA_PREFIX = "data:"
# By the type of a content part: the key of its text.
TEXT_PART_KEYS = {
    "text": "text",
    "refusal": "refusal",
    "input_text": "text",
    "output_text": "text",
}


@dataclass(frozen=True, kw_only=True)
class ClientMessage:
    """A message as the client sent it."""

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    images: tuple[Image, ...] = ()

    @property
    def has_content(self) -> bool:
        """False for an empty message, which clients store for an answer that failed."""
        return bool(self.content or self.calls or self.images or self.role == "tool")

    def to_chat_message(self, *, supports_images: bool) -> ChatMessage:
        """Return the message for a provider. Without image support, a note replaces each image."""
        texts = [self.content]
        if not supports_images:
            texts += [
                IMAGE_UNSUPPORTED_NOTE.format(name=f"image-{number}")
                for number in range(1, len(self.images) + 1)
            ]
        return ChatMessage(
            role=self.role,
            content="\n\n".join(text for text in texts if text),
            tool_calls=self.calls,
            tool_call_id=self.call_id,
            images=self.images if supports_images else (),
        )

    def to_import_record(self) -> dict[str, Any]:
        """Return the message in the form that `transfer.importer.import_messages` reads."""
        record: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.calls:
            record["tool_calls"] = [
                {"id": call.id, "name": call.name, "arguments": call.arguments}
                for call in self.calls
            ]
        if self.role == "tool":
            record["tool_call_id"] = self.call_id
        return record


def parse_messages(messages: Any) -> tuple[str | None, list[ClientMessage]]:
    """Return the joined system texts (None if there are none) and the other messages.

    Empty messages are left out. Raises the 400 problem that names the field, and TooLargeProblem.
    """
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
            text, _ = _parse_content(message.get("content"), path)
            system_texts.append(_check_length(text, path))
        else:
            client_messages.append(_parse_message(message, path))
    client_messages = [message for message in client_messages if message.has_content]
    if not client_messages:
        raise InvalidFieldError("messages", "None of the messages has any content.")
    return "\n\n".join(system_texts) if system_texts else None, client_messages


def get_trailing_results(messages: Sequence[ClientMessage]) -> list[ClientMessage]:
    """Return the tool results at the end of the messages."""
    start = len(messages)
    while start and messages[start - 1].role == "tool":
        start -= 1
    return list(messages[start:])


def normalize_arguments(arguments: str) -> str:
    """Return JSON text in a form that is equal for equal values; other text unchanged."""
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _parse_message(message: Mapping[str, Any], path: str) -> ClientMessage:
    role = message.get("role")
    if role not in ("user", "assistant", "tool"):
        raise InvalidFieldError(f"{path}.role", "One of system, developer, user, assistant, tool.")
    text, image_parts = _parse_content(message.get("content"), path)
    if role == "tool":  # results of any length are accepted, and cut when they are stored
        call_id = _parse_required_text(message.get("tool_call_id"), f"{path}.tool_call_id")
        return ClientMessage(role=role, content=text, call_id=call_id)
    _check_length(text, path)
    if role == "user":
        return ClientMessage(role=role, content=text, images=tuple(image_parts))
    text = text or _parse_text(message.get("refusal"), f"{path}.refusal")
    calls = tuple(_parse_calls(message.get("tool_calls"), f"{path}.tool_calls"))
    return ClientMessage(role=role, content=text, calls=calls)


def _parse_content(content: Any, message_path: str) -> tuple[str, list[Image]]:
    """Return the text and the images of a message's content."""
    path = f"{message_path}.content"
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise InvalidFieldError(path, "A text, or a list of parts.")
    texts: list[str] = []
    image_parts: list[Image] = []
    for index, item in enumerate(content):
        part_path = f"{path}[{index}]"
        part = _require_object(item, part_path)
        type = str(part.get("type"))
        if type == "image_url":
            image_parts.append(_parse_image(part.get("image_url"), f"{part_path}.image_url"))
        elif type in TEXT_PART_KEYS:
            key = TEXT_PART_KEYS[type]
            texts.append(_parse_text(part.get(key), f"{part_path}.{key}"))
        else:
            detail = f"Parts of the type {type!r} are not supported."
            raise InvalidFieldError(f"{part_path}.type", detail)
    return "\n\n".join(text for text in texts if text), image_parts


def _check_length(text: str, path: str) -> str:
    if limits.exceeds_bytes(text, limits.MESSAGE_BYTES):
        kilobytes = limits.MESSAGE_BYTES // limits.KB
        raise TooLargeProblem(f"{path} is longer than {kilobytes} KB of text.")
    return text


def _parse_image(value: Any, part_path: str) -> Image:
    """Return the image of a data: URL (RFC 2397). Other URLs are never fetched."""
    path = f"{part_path}.url"
    url = value.get("url") if isinstance(value, Mapping) else value
    if not isinstance(url, str) or not url.startswith(DATA_PREFIX):
        raise InvalidFieldError(
            path, "Send an image as a data: address in base64; other addresses are not fetched."
        )
    head, separator, data = url.partition(",")
    if not separator or not head.endswith(";base64"):
        raise InvalidFieldError(path, "A data: address in base64 is expected.")
    try:
        image_bytes = base64.b64decode(data, validate=True)
        image_info = images.identify_image(image_bytes)
    except (binascii.Error, ValueError):
        raise InvalidFieldError(path, "This is not base64.") from None
    except images.BrokenImage as error:
        raise InvalidFieldError(path, str(error)) from None
    if image_info is None:
        raise InvalidFieldError(path, "An image is PNG, JPEG, GIF or WebP.")
    return Image(media_type=image_info.media_type, data=image_bytes)


def _parse_calls(value: Any, path: str) -> Iterator[ToolCall]:
    if value is None:
        return
    if not isinstance(value, list):
        raise InvalidFieldError(path, "A list of calls.")
    for index, item in enumerate(value):
        call_path = f"{path}[{index}]"
        call = _require_object(item, call_path)
        function_path = f"{call_path}.function"
        function = _require_object(call.get("function"), function_path)
        yield ToolCall(
            id=_parse_required_text(call.get("id"), f"{call_path}.id"),
            name=_parse_required_text(function.get("name"), f"{function_path}.name"),
            arguments=_parse_text(function.get("arguments"), f"{function_path}.arguments"),
        )


def _parse_text(value: Any, path: str) -> str:
    """Return a text that may be missing."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidFieldError(path, "A text.")
    return value


def _parse_required_text(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidFieldError(path, "A text.")
    return value


def _require_object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidFieldError(path, "An object.")
    return value

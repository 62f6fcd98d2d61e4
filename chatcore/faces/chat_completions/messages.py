"""The messages of a request, read: one system text, and what was said, in a form that compares with what is stored."""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chatcore.files import images
from chatcore.files.rendering import NOT_SEEN
from chatcore.providers.base import ChatMessage, Image, ToolCall
from chatcore.rest import limits
from chatcore.rest.problems import Invalid, TooLarge

_DATA = "data:"
_PARTS = {"text": "text", "refusal": "refusal", "input_text": "text", "output_text": "text"}


@dataclass(frozen=True, kw_only=True)
class Said:
    """One message as the client sent it."""

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    images: tuple[Image, ...] = ()

    @property
    def says_something(self) -> bool:
        """More than nothing at all: empty answers are what clients keep of those that failed."""
        return bool(self.content or self.calls or self.images or self.role == "tool")

    def as_sent(self, *, sees: bool) -> ChatMessage:
        """As a provider is asked with it; a model that does not see is told that there was an image."""
        unseen = (
            []
            if sees
            else [
                NOT_SEEN.format(name=f"image-{number}")
                for number, _ in enumerate(self.images, start=1)
            ]
        )
        return ChatMessage(
            role=self.role,
            content="\n\n".join(part for part in (self.content, *unseen) if part),
            tool_calls=self.calls,
            tool_call_id=self.call_id,
            images=self.images if sees else (),
        )

    def as_imported(self) -> dict[str, Any]:
        """As `history.import_messages` reads it."""
        own: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.calls:
            own["tool_calls"] = [
                {"id": call.id, "name": call.name, "arguments": call.arguments}
                for call in self.calls
            ]
        return own | ({"tool_call_id": self.call_id} if self.role == "tool" else {})


def read(messages: Any) -> tuple[str | None, list[Said]]:
    """The system text (None: there is none) and what was said, without what says nothing. Raises 400 that names the place, and 413."""
    if not isinstance(messages, list) or not messages:
        raise Invalid("messages", "A list with at least one message.")
    if len(messages) > limits.IMPORT_MESSAGES:
        raise TooLarge(f"A request has at most {limits.IMPORT_MESSAGES:,} messages.")
    system: list[str] = []
    said: list[Said] = []
    for index, item in enumerate(messages):
        path = f"messages[{index}]"
        message = _object(item, path)
        if message.get("role") in ("system", "developer"):
            system.append(_limited(_content(message.get("content"), path)[0], path))
        else:
            said.append(_said(message, path))
    if not any(each.says_something for each in said):
        raise Invalid("messages", "Nobody says anything in them.")
    return "\n\n".join(system) if system else None, [each for each in said if each.says_something]


def _said(message: Mapping[str, Any], path: str) -> Said:
    role = message.get("role")
    if role not in ("user", "assistant", "tool"):
        raise Invalid(f"{path}.role", "One of system, developer, user, assistant, tool.")
    text, shown = _content(message.get("content"), path)
    if role != "tool":
        _limited(text, path)
    if role == "assistant":
        text = text or _text(message.get("refusal"), f"{path}.refusal")
        return Said(
            role=role,
            content=text,
            calls=tuple(_calls(message.get("tool_calls"), f"{path}.tool_calls")),
        )
    if role == "tool":
        return Said(
            role=role,
            content=text,
            call_id=_text(message.get("tool_call_id"), f"{path}.tool_call_id", needed=True),
        )
    return Said(role=role, content=text, images=tuple(shown))


def _content(content: Any, path: str) -> tuple[str, list[Image]]:
    """The text of a message's content, and its images."""
    path = f"{path}.content"
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise Invalid(path, "A text, or a list of parts.")
    texts, shown = [], []
    for index, item in enumerate(content):
        place = f"{path}[{index}]"
        part = _object(item, place)
        kind = str(part.get("type"))
        if kind == "image_url":
            shown.append(_image(part.get("image_url"), f"{place}.image_url"))
        elif kind in _PARTS:
            texts.append(_text(part.get(_PARTS[kind]), f"{place}.{_PARTS[kind]}"))
        else:
            raise Invalid(f"{place}.type", f"Parts of type {kind!r} cannot be taken here.")
    return "\n\n".join(text for text in texts if text), shown


def _limited(text: str, path: str) -> str:
    if len(text) * 4 > limits.MESSAGE_BYTES and len(text.encode()) > limits.MESSAGE_BYTES:
        raise TooLarge(f"{path} is longer than {limits.MESSAGE_BYTES // limits.KB} KB of text.")
    return text


def _image(given: Any, path: str) -> Image:
    url = given.get("url") if isinstance(given, Mapping) else given
    if not isinstance(url, str) or not url.startswith(_DATA):
        raise Invalid(
            f"{path}.url",
            "An image is sent here as a data: address, in base64; others are not fetched.",
        )
    head, comma, data = url.partition(",")
    if not comma or not head.endswith(";base64"):
        raise Invalid(f"{path}.url", "A data: address in base64 is expected.")
    try:
        raw = base64.b64decode(data, validate=True)
        picture = images.read(raw)
    except (binascii.Error, ValueError):
        raise Invalid(f"{path}.url", "This is not base64.") from None
    except images.BrokenImage as broken:
        raise Invalid(f"{path}.url", str(broken)) from None
    if picture is None:
        raise Invalid(f"{path}.url", "An image is PNG, JPEG, GIF or WebP.")
    return Image(media_type=picture.media_type, data=raw)


def _calls(given: Any, path: str) -> Iterator[ToolCall]:
    if given is None:
        return
    if not isinstance(given, list):
        raise Invalid(path, "A list of calls.")
    for index, item in enumerate(given):
        place = f"{path}[{index}]"
        call = _object(item, place)
        function = _object(call.get("function"), f"{place}.function")
        yield ToolCall(
            id=_text(call.get("id"), f"{place}.id", needed=True),
            name=_text(function.get("name"), f"{place}.function.name", needed=True),
            arguments=_text(function.get("arguments"), f"{place}.function.arguments"),
        )


def same_arguments(arguments: str) -> str:
    """Arguments in a form in which those that are equal as JSON are equal."""
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def results_at_the_end(said: Sequence[Said]) -> list[Said]:
    """The tool results that the last message closes."""
    count = next(
        (index for index, each in enumerate(reversed(said)) if each.role != "tool"), len(said)
    )
    return list(said[len(said) - count :])


def _text(value: Any, path: str, *, needed: bool = False) -> str:
    if value is None and not needed:
        return ""
    if not isinstance(value, str) or (needed and not value):
        raise Invalid(path, "A text.")
    return value


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Invalid(path, "An object.")
    return value

"""Parse the messages of a request into one system text and messages to compare with stored ones."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chatcore.base.rest import limits
from chatcore.base.rest.problems import InvalidFieldError, TooLargeProblem
from chatcore.contrib.compat.chat_completions.completion_format import SEAL_NAME
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.contrib.compat.content_parts import (
    decode_data,
    inspect_data,
    parse_image,
    parse_required_text,
    require_object,
)
from chatcore.contrib.compat.sealed_data import unseal
from chatcore.files import intake
from chatcore.models import Attachment
from chatcore.providers.base import ToolCall
from chatcore.providers.provider_data import REASONING_FIELDS
from models_registry.models import AiModel

# By the type of a content part: the key of its text.
TEXT_PART_KEYS = {
    "text": "text",
    "refusal": "refusal",
    "input_text": "text",
    "output_text": "text",
}


def parse_messages(messages: Any, model: AiModel) -> tuple[str | None, list[ClientMessage]]:
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
        message = require_object(item, path)
        if message.get("role") in ("system", "developer"):
            text, _ = _parse_content(message.get("content"), path)
            system_texts.append(_check_length(text, path))
        else:
            client_messages.append(_parse_message(message, path, model))
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


def _parse_message(message: Mapping[str, Any], path: str, model: AiModel) -> ClientMessage:
    role = message.get("role")
    if role not in ("user", "assistant", "tool"):
        raise InvalidFieldError(f"{path}.role", "One of system, developer, user, assistant, tool.")
    text, files = _parse_content(message.get("content"), path)
    if role == "tool":  # results of any length are accepted, and cut when they are stored
        call_id = parse_required_text(message.get("tool_call_id"), f"{path}.tool_call_id")
        return ClientMessage(role=role, content=text, call_id=call_id)
    _check_length(text, path)
    if role == "user":
        return ClientMessage(role=role, content=text, files=tuple(files))
    text = text or _parse_text(message.get("refusal"), f"{path}.refusal")
    calls = tuple(_parse_calls(message.get("tool_calls"), f"{path}.tool_calls"))
    provider_data = _read_provider_data(message, model)
    return ClientMessage(role=role, content=text, calls=calls, provider_data=provider_data)


def _read_provider_data(message: Mapping[str, Any], model: AiModel) -> dict[str, Any]:
    """Return what the provider of an answer wants back: sealed by us, or as its clients know it.

    What has another form than that of any server is left out: no provider would take it.
    """
    calls = message.get("tool_calls") or []
    extras = {call["id"]: call.get("extra_content") for call in calls}
    extras = {call_id: dict(extra) for call_id, extra in extras.items() if _is_object(extra)}
    seals = [extra.pop(SEAL_NAME, None) for extra in extras.values()]
    for sealed in seals:
        provider_data = unseal(sealed.get("sealed")) if _is_object(sealed) else {}
        if provider_data:
            return provider_data
    data: dict[str, Any] = {"extras": {name: extra for name, extra in extras.items() if extra}}
    for field in REASONING_FIELDS[::-1]:
        if isinstance(message.get(field), str):
            data |= {"reasoning": message[field], "reasoning_field": field}
    data["reasoning_details"] = message.get("reasoning_details")
    known_data = {name: value for name, value in data.items() if value}
    return {"openai": {"model": model.name, **known_data}} if known_data else {}


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _parse_content(content: Any, message_path: str) -> tuple[str, list[Attachment]]:
    """Return the text and the files of a message's content."""
    path = f"{message_path}.content"
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise InvalidFieldError(path, "A text, or a list of parts.")
    texts: list[str] = []
    files: list[Attachment] = []
    for index, item in enumerate(content):
        part_path = f"{path}[{index}]"
        part = require_object(item, part_path)
        type = str(part.get("type"))
        if type == "image_url":
            files.append(_parse_image(part, f"{part_path}.image_url", len(files) + 1))
        elif type == "file":
            files.append(_parse_file(part, f"{part_path}.file"))
        elif type in TEXT_PART_KEYS:
            key = TEXT_PART_KEYS[type]
            texts.append(_parse_text(part.get(key), f"{part_path}.{key}"))
        else:
            detail = f"Parts of the type {type!r} are not supported."
            raise InvalidFieldError(f"{part_path}.type", detail)
    if len(files) > intake.MAX_FILES:
        raise TooLargeProblem(f"A message has at most {intake.MAX_FILES} files.")
    return "\n\n".join(text for text in texts if text), files


def _check_length(text: str, path: str) -> str:
    if limits.exceeds_bytes(text, limits.MESSAGE_BYTES):
        kilobytes = limits.MESSAGE_BYTES // limits.KB
        raise TooLargeProblem(f"{path} is longer than {kilobytes} KB of text.")
    return text


def _parse_image(part: Mapping[str, Any], path: str, number: int) -> Attachment:
    value = part.get("image_url")
    url = value.get("url") if isinstance(value, Mapping) else value
    return parse_image(url, f"{path}.url", number)


def _parse_file(part: Mapping[str, Any], path: str) -> Attachment:
    file = require_object(part.get("file"), path)
    if file.get("file_id"):
        raise InvalidFieldError(f"{path}.file_id", "Send the file itself as `file_data`.")
    data_path = f"{path}.file_data"
    data = decode_data(parse_required_text(file.get("file_data"), data_path), data_path)
    name = file.get("filename")
    return inspect_data(data, name if isinstance(name, str) else "file", data_path)


def _parse_calls(value: Any, path: str) -> Iterator[ToolCall]:
    if value is None:
        return
    if not isinstance(value, list):
        raise InvalidFieldError(path, "A list of calls.")
    for index, item in enumerate(value):
        call_path = f"{path}[{index}]"
        call = require_object(item, call_path)
        function_path = f"{call_path}.function"
        function = require_object(call.get("function"), function_path)
        yield ToolCall(
            id=parse_required_text(call.get("id"), f"{call_path}.id"),
            name=parse_required_text(function.get("name"), f"{function_path}.name"),
            arguments=_parse_text(function.get("arguments"), f"{function_path}.arguments"),
        )


def _parse_text(value: Any, path: str) -> str:
    """Return a text that may be missing."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidFieldError(path, "A text.")
    return value

"""Parse the messages of a request into one system text and messages to compare with stored ones."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.contrib.compat.content_parts import (
    Content,
    limit_messages,
    limit_text,
    parse_content,
    parse_file,
    parse_image,
    parse_required_text,
    parse_text,
    require_object,
)
from chatcore.contrib.compat.sealed_data import SEAL_NAME, unseal
from chatcore.models import Attachment
from chatcore.providers.base import ToolCall
from chatcore.providers.provider_data import REASONING_FIELDS
from models_registry.models import AiModel


def parse_messages(messages: object, model: AiModel) -> tuple[str | None, list[ClientMessage]]:
    """Return the joined system texts (None if there are none) and the other messages.

    Empty messages are left out. Raises the 400 problem that names the field, and TooLargeProblem.
    """
    if not isinstance(messages, list) or not messages:
        raise InvalidFieldError("messages", "A list with at least one message.")
    limit_messages(messages)
    system_texts: list[str] = []
    client_messages: list[ClientMessage] = []
    for index, item in enumerate(messages):
        path = f"messages[{index}]"
        message = require_object(item, path)
        if message.get("role") in ("system", "developer"):
            content = _parse_content(message.get("content"), path)
            system_texts.append(limit_text(content.text, path))
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


def _parse_message(message: Mapping[str, object], path: str, model: AiModel) -> ClientMessage:
    role = message.get("role")
    if role not in ("user", "assistant", "tool"):
        raise InvalidFieldError(f"{path}.role", "One of system, developer, user, assistant, tool.")
    content = _parse_content(message.get("content"), path)
    if role == "tool":  # results of any length are accepted, and cut when they are stored
        call_id = parse_required_text(message.get("tool_call_id"), f"{path}.tool_call_id")
        return ClientMessage(role=role, content=content.text, call_id=call_id)
    limit_text(content.text, path)
    if role == "user":
        return ClientMessage(role=role, content=content.text, files=content.files)
    text = content.text or parse_text(message.get("refusal") or "", f"{path}.refusal")
    calls = tuple(_parse_calls(message.get("tool_calls"), f"{path}.tool_calls"))
    provider_data = _read_provider_data(message, model)
    return ClientMessage(role=role, content=text, calls=calls, provider_data=provider_data)


def _read_provider_data(message: Mapping[str, Any], model: AiModel) -> dict[str, object]:
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
    data: dict[str, object] = {"extras": {name: extra for name, extra in extras.items() if extra}}
    for field in REASONING_FIELDS[::-1]:
        if isinstance(message.get(field), str):
            data |= {"reasoning": message[field], "reasoning_field": field}
    data["reasoning_details"] = message.get("reasoning_details")
    known_data = {name: value for name, value in data.items() if value}
    return {"openai": {"model": model.name, **known_data}} if known_data else {}


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


def _parse_content(value: object, message_path: str) -> Content:
    """Return the text and the files of a message's content, which may be missing."""
    value = "" if value is None else value
    return parse_content(value, f"{message_path}.content", FILE_READERS)


def _parse_image(part: Mapping[str, object], path: str, number: int) -> Attachment:
    value = part.get("image_url")
    url = value.get("url") if isinstance(value, Mapping) else value
    return parse_image(url, f"{path}.image_url.url", number)


def _parse_file(part: Mapping[str, object], path: str, number: int) -> Attachment:
    file_path = f"{path}.file"
    return parse_file(require_object(part.get("file"), file_path), file_path)


FILE_READERS = {"image_url": _parse_image, "file": _parse_file}


def _parse_calls(value: object, path: str) -> Iterator[ToolCall]:
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
            arguments=parse_text(function.get("arguments") or "", f"{function_path}.arguments"),
        )

"""Parse the messages of a request into one system text and messages to compare with stored ones."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from textwrap import shorten
from typing import Any

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.client_messages import ClientMessage, add_system_text
from chatcore.contrib.compat.content_parts import (
    Content,
    iterate_objects,
    limit_messages,
    limit_text,
    parse_content,
    parse_file,
    parse_image,
    parse_required_text,
    parse_text,
    require_object,
)
from chatcore.contrib.compat.custom_tools import build_arguments
from chatcore.contrib.compat.known_types import Handling, find_handling
from chatcore.contrib.compat.sealed_data import SEAL_NAME, unseal
from chatcore.models import Attachment, Message, Turn
from chatcore.providers.base import ToolCall, Usage
from chatcore.providers.provider_data import REASONING_FIELDS
from chatcore.turns import waiting
from models_registry.models import AiModel

MESSAGE_COLUMNS = (
    "pk",
    "seq",
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "status",
    "original_chars",
    "turn_id",
    "turn__tools",
)

MARK = "[This answer waits for your word. "
MAX_ARGUMENT_CHARS = 300


def parse_messages(
    messages: object, model: AiModel
) -> tuple[str | None, list[ClientMessage], list[str]]:
    """Return the leading system texts, joined, the other messages, and what was left out.

    The text is None if there are none. Empty messages are left out unsaid. Raises the 400 problem
    that names the field, and TooLargeProblem.
    """
    if not isinstance(messages, list) or not messages:
        raise InvalidFieldError("messages", "A list with at least one message.")
    limit_messages(messages)
    system_texts: list[str] = []
    client_messages: list[ClientMessage] = []
    left_out: list[str] = []
    for path, message in iterate_objects(messages, "messages"):
        content = _parse_content(message.get("content"), path)
        left_out += [f"messages.content.{type[:64]}" for type in content.left_out]
        if message.get("role") in ("system", "developer"):
            text = limit_text(content.text, path)
            if not client_messages:
                system_texts.append(text)
            elif text:
                add_system_text(client_messages, text)
            continue
        message, unknown_types = _drop_unknown_calls(message)
        left_out += [f"messages.tool_calls.{type[:64]}" for type in unknown_types]
        client_message = _parse_message(message, content, path, model)
        if client_message.has_content:
            client_messages.append(client_message)
    if not client_messages:
        raise InvalidFieldError("messages", "None of the messages has any content.")
    return "\n\n".join(system_texts) if system_texts else None, client_messages, left_out


def get_trailing_results(messages: Sequence[ClientMessage]) -> list[ClientMessage]:
    """Return the tool results at the end of the messages."""
    start = len(messages)
    while start and messages[start - 1].role == "tool":
        start -= 1
    return list(messages[start:])


def _parse_arguments(value: object, path: str) -> str:
    """Return the arguments of a call as JSON; some clients send them as an object."""
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return parse_text(value, f"{path}.arguments")


def normalize_arguments(arguments: str) -> str:
    """Return JSON text in a form that is equal for equal values; other text unchanged."""
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _parse_message(
    message: Mapping[str, object], content: Content, path: str, model: AiModel
) -> ClientMessage:
    role = message.get("role")
    if role not in ("user", "assistant", "tool"):
        raise InvalidFieldError(f"{path}.role", "One of system, developer, user, assistant, tool.")
    if role == "tool":  # results of any length are accepted, and cut when they are stored
        call_id = parse_required_text(message.get("tool_call_id"), f"{path}.tool_call_id")
        return ClientMessage(role=role, content=content.text, call_id=call_id)
    limit_text(content.text, path)
    if role == "user":
        return ClientMessage(role=role, content=content.user_text, files=content.files)
    text = content.text or parse_text(message.get("refusal") or "", f"{path}.refusal")
    calls = tuple(_parse_calls(message.get("tool_calls"), f"{path}.tool_calls"))
    provider_data = _read_provider_data(message, model)
    return ClientMessage(role=role, content=text, calls=calls, provider_data=provider_data)


def _drop_unknown_calls(
    message: Mapping[str, object],
) -> tuple[Mapping[str, object], list[str]]:
    """Return a message without calls of types that are left out, and these types."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message, []
    types = [
        str(call.get("type") or "function") if isinstance(call, Mapping) else "function"
        for call in calls
    ]
    is_left_out = [
        find_handling("chat_completions.tools", type) is Handling.LEFT_OUT for type in types
    ]
    if not any(is_left_out):
        return message, []
    kept_calls = [call for call, is_out in zip(calls, is_left_out, strict=True) if not is_out]
    unknown_types = [type for type, is_out in zip(types, is_left_out, strict=True) if is_out]
    return {**message, "tool_calls": kept_calls}, unknown_types


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
    return parse_content(
        value, f"{message_path}.content", FILE_READERS, table="chat_completions.content"
    )


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
    for call_path, call in iterate_objects(value, path):
        if call.get("type") == "custom":
            yield _parse_custom_call(call, call_path)
            continue
        function_path = f"{call_path}.function"
        function = require_object(call.get("function"), function_path)
        yield ToolCall(
            id=parse_required_text(call.get("id"), f"{call_path}.id"),
            name=parse_required_text(function.get("name"), f"{function_path}.name"),
            arguments=_parse_arguments(function.get("arguments") or "", function_path),
        )


def _parse_custom_call(call: Mapping[str, object], path: str) -> ToolCall:
    custom_path = f"{path}.custom"
    custom = require_object(call.get("custom"), custom_path)
    text = parse_text(custom.get("input") or "", f"{custom_path}.input")
    return ToolCall(
        id=parse_required_text(call.get("id"), f"{path}.id"),
        name=parse_required_text(custom.get("name"), f"{custom_path}.name"),
        arguments=build_arguments(text),
    )


@dataclass(frozen=True, kw_only=True)
class StoredMessage:
    """A stored message in the form in which this API showed it to the client.

    It may join several rows; `pk` is then the last one.
    """

    pk: int
    seq: int
    role: str
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool_name: str = ""
    is_interrupted: bool = False
    is_truncated: bool = False


def build_stored_messages(rows: Iterable[Mapping[str, Any]]) -> list[StoredMessage]:
    """Return stored rows in the form in which the client received them.

    Built-in tools run on the server. Clients never see their calls and results, and the texts
    around them are one answer.
    """
    stored_messages: list[StoredMessage] = []
    pending_text = ""
    for row in rows:
        if row["role"] == Message.Role.TOOL and not _is_client_tool(row, row["tool_name"]):
            continue
        calls = tuple(
            ToolCall(**call) for call in row["tool_calls"] if _is_client_tool(row, call["name"])
        )
        content = row["content"]
        if row["role"] == Message.Role.ASSISTANT:
            content = "\n\n".join(text for text in (pending_text, content) if text)
        if row["tool_calls"] and not calls:
            pending_text = content
        else:
            pending_text = ""
            stored_messages.append(_build_stored_message(row, content, calls))
    return stored_messages


def read_usage(message: Message) -> Usage | None:
    """Return the tokens of the call that wrote a stored message; None if nobody counted them."""
    if message.token_count_input is None:
        return None
    return Usage(
        input=message.token_count_input,
        output=message.token_count_output or 0,
        cache_read=message.token_count_cache_read,
        cache_write=message.token_count_cache_write,
    )


def _is_client_tool(row: Mapping[str, Any], tool_name: str) -> bool:
    """Return True if the client knows this tool of a row: its own, or any of an imported row."""
    if row["turn_id"] is None:
        return True
    return any(tool["name"] == tool_name for tool in row["turn__tools"])


def _build_stored_message(
    row: Mapping[str, Any], content: str, calls: tuple[ToolCall, ...]
) -> StoredMessage:
    return StoredMessage(
        pk=row["pk"],
        seq=row["seq"],
        role=row["role"],
        content=content,
        calls=calls,
        call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        is_interrupted=row["status"] == Message.Status.INTERRUPTED,
        is_truncated=row["original_chars"] is not None,
    )


def build_question(turn: Turn) -> str:
    """Return the sentence of a turn that waits for approvals; empty if it waits for none.

    A call of an MCP server's tool that a person must allow is no call for the client: it could not
    answer it. So the answer ends with a sentence that says who is asked what, and where to answer.
    """
    calls = waiting.find_open_calls(turn).undecided_calls
    if not calls:
        return ""
    texts = [
        f"{request['tool']} of {request['server']} with"
        f" {shorten(request['arguments'], MAX_ARGUMENT_CHARS, placeholder=' …')}"
        for request in waiting.build_approval_requests(turn, calls)
    ]
    return (
        f"{MARK}The model wants to call: {'; '.join(texts)}. Allow or refuse it on the page of"
        f" this chat, or with POST /api/v1/sessions/{turn.session_id}/approvals.]"
    )


def find_asked_message(
    message: ClientMessage,
    previous_message: ClientMessage | None,
    stored_messages: Sequence[StoredMessage],
) -> StoredMessage | None:
    """Return the stored answer that a client has with such a sentence at its end.

    It is the one to the same question that begins with the same words, and may say more by now.
    """
    if message.role != "assistant" or MARK not in message.content or previous_message is None:
        return None
    text = message.content[: message.content.index(MARK)].strip()
    for question, answer in pairwise(stored_messages):
        is_same_question = (question.role, question.content.strip()) == (
            previous_message.role,
            previous_message.content.strip(),
        )
        if is_same_question and answer.role == "assistant" and answer.content.startswith(text):
            return answer
    return None

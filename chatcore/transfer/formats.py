"""Convert message lists from and to the formats of OpenAI's and Anthropic's APIs.

These formats have no place for settings and summaries; only messages are converted.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from chatcore.transfer.reader import InvalidImport

Format = Literal["chatcore", "openai", "anthropic"]
FORMATS: tuple[Format, ...] = ("chatcore", "openai", "anthropic")

_OPENAI_ROLES = {"developer": "system", "function": "tool"}


def to_chatcore(messages: object, format: Format) -> object:
    """Return the list in our own format, which `importer.import_messages` takes.

    Raises InvalidImport, which names the place.
    """
    if format == "chatcore" or not isinstance(messages, list):
        return messages
    convert = {"openai": _from_openai, "anthropic": _from_anthropic}[format]
    converted_messages: list[dict[str, object]] = []
    for index, item in enumerate(messages):
        path = f"messages[{index}]"
        converted_messages += convert(_require_object(item, path), path)
    return converted_messages


def to_openai(messages: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return the messages as OpenAI's Chat Completions API takes them."""
    return [_to_openai_message(message) for message in messages]


def to_anthropic(messages: Iterable[Mapping[str, Any]]) -> dict[str, object]:
    """Return `system` and `messages` of a request to Anthropic's Messages API.

    Tool results become blocks of a user's message. Neighbouring messages of one role are joined,
    because the API expects the roles to alternate.
    """
    system: list[str] = []
    api_messages: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "system":
            system.append(message["content"])
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = list(_to_anthropic_blocks(message))
        if api_messages and api_messages[-1]["role"] == role:
            api_messages[-1]["content"] += blocks
        elif blocks:
            api_messages.append({"role": role, "content": blocks})
    return {"system": "\n\n".join(system), "messages": api_messages}


def _to_openai_message(message: Mapping[str, Any]) -> dict[str, object]:
    api_message: dict[str, object] = {"role": message["role"], "content": message["content"]}
    if message.get("tool_calls"):
        api_message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in message["tool_calls"]
        ]
        api_message["content"] = message["content"] or None
    if message["role"] == "tool":
        api_message["tool_call_id"] = message["tool_call_id"]
    return api_message


def _to_anthropic_blocks(message: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    if message["role"] == "tool":
        yield {
            "type": "tool_result",
            "tool_use_id": message["tool_call_id"],
            "content": message["content"],
            "is_error": message["is_error"],
        }
        return
    if message["content"]:
        yield {"type": "text", "text": message["content"]}
    for call in message["tool_calls"]:
        yield {
            "type": "tool_use",
            "id": call["id"],
            "name": call["name"],
            "input": _parse_arguments(call["arguments"]),
        }


def _parse_arguments(arguments: str) -> dict[str, object]:
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        value = None
    # Anthropic's API takes only an object. A model may have written broken JSON, which is stored as
    # it came; it is exported as a value, so that nothing is lost.
    return value if isinstance(value, dict) else {"unreadable_arguments": arguments}


def _from_openai(item: Mapping[str, object], path: str) -> Iterator[dict[str, object]]:
    role = _OPENAI_ROLES.get(str(item.get("role")), item.get("role"))
    message: dict[str, object] = {"role": role, "content": _join_text(item.get("content"), path)}
    calls = item.get("tool_calls")
    if calls is not None:
        if not isinstance(calls, list):
            raise InvalidImport(f"{path}.tool_calls", "It must be a list of calls.")
        message["tool_calls"] = [
            _from_openai_call(call, f"{path}.tool_calls[{index}]")
            for index, call in enumerate(calls)
        ]
    if role == "tool":
        message["tool_call_id"] = item.get("tool_call_id")
    yield message


def _from_openai_call(call: Any, path: str) -> dict[str, object]:
    function = _require_object(_require_object(call, path).get("function"), f"{path}.function")
    return {
        "id": call.get("id"),
        "name": function.get("name"),
        "arguments": function.get("arguments", ""),
    }


def _from_anthropic(item: Mapping[str, object], path: str) -> Iterator[dict[str, object]]:
    """Yield a message for each tool result, then one for the texts and tool calls."""
    content = item.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        raise InvalidImport(f"{path}.content", "It must be a text, or a list of blocks.")
    text_blocks = []
    calls = []
    for index, part in enumerate(blocks):
        block_path = f"{path}.content[{index}]"
        block = _require_object(part, block_path)
        kind = block.get("type")
        if kind == "text":
            text_blocks.append({"type": "text", "text": block.get("text")})
        elif kind == "tool_use":
            calls.append(_from_anthropic_call(block))
        elif kind == "tool_result":
            yield {
                "role": "tool",
                "tool_call_id": block.get("tool_use_id"),
                "content": _join_text(block.get("content"), block_path),
                "is_error": bool(block.get("is_error", False)),
            }
        # Thinking is left out: its signature is valid only in the conversation it comes from.
        elif kind not in ("thinking", "redacted_thinking"):
            raise InvalidImport(
                f"{block_path}.type", f"Blocks of type {kind!r} cannot be imported."
            )
    if text_blocks or calls:
        yield {
            "role": item.get("role"),
            "content": _join_text(text_blocks, path),
            "tool_calls": calls,
        }


def _from_anthropic_call(block: Mapping[str, object]) -> dict[str, object]:
    return {
        "id": block.get("id"),
        "name": block.get("name"),
        "arguments": json.dumps(block.get("input", {}), ensure_ascii=False),
    }


def _join_text(content: object, path: str) -> str:
    """Return the text of a message's content, which is a text or a list of text parts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise InvalidImport(f"{path}.content", "It must be a text, or a list of text parts.")
    texts = []
    for index, part in enumerate(content):
        text = _require_object(part, f"{path}.content[{index}]").get("text")
        if not isinstance(text, str):
            raise InvalidImport(
                f"{path}.content[{index}]", "Only text can be imported, no other type of content."
            )
        texts.append(text)
    return "\n\n".join(texts)


def _require_object(value: object, path: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidImport(path, "It must be an object.")
    return value

"""Message lists as OpenAI's and Anthropic's APIs write them, from and to the house's own; settings and summaries have no place in them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from chatcore.transfer.reader import NotImportable

Format = Literal["chatcore", "openai", "anthropic"]
FORMATS: tuple[Format, ...] = ("chatcore", "openai", "anthropic")

_OPENAI_ROLES = {"developer": "system", "function": "tool"}


def to_own(messages: Any, format: Format) -> Any:
    """The list in the house's own form, which `history.import_messages` reads. Raises NotImportable, naming the place."""
    if format == "chatcore" or not isinstance(messages, list):
        return messages
    read = {"openai": _from_openai, "anthropic": _from_anthropic}[format]
    return [
        own
        for index, item in enumerate(messages)
        for own in read(_object(item, f"messages[{index}]"), f"messages[{index}]")
    ]


def to_openai(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Chat Completions messages."""
    return [_openai(message) for message in messages]


def to_anthropic(messages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The `system` and `messages` of a Messages request: results are blocks of a user's message, and one role never follows itself."""
    system: list[str] = []
    said: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "system":
            system.append(message["content"])
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = list(_blocks(message))
        if said and said[-1]["role"] == role:
            said[-1]["content"] += blocks
        elif blocks:
            said.append({"role": role, "content": blocks})
    return {"system": "\n\n".join(system), "messages": said}


def _openai(message: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    if message.get("tool_calls"):
        shown["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in message["tool_calls"]
        ]
        shown["content"] = message["content"] or None
    if message["role"] == "tool":
        shown["tool_call_id"] = message["tool_call_id"]
    return shown


def _blocks(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
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
            "input": _parsed(call["arguments"]),
        }


def _parsed(arguments: str) -> dict[str, Any]:
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"unreadable_arguments": arguments}


def _from_openai(item: Mapping[str, Any], path: str) -> Iterator[dict[str, Any]]:
    role = _OPENAI_ROLES.get(str(item.get("role")), item.get("role"))
    own: dict[str, Any] = {"role": role, "content": _text(item.get("content"), path)}
    calls = item.get("tool_calls")
    if calls is not None:
        if not isinstance(calls, list):
            raise NotImportable(f"{path}.tool_calls", "A list of calls.")
        own["tool_calls"] = [
            _openai_call(call, f"{path}.tool_calls[{index}]") for index, call in enumerate(calls)
        ]
    if role == "tool":
        own["tool_call_id"] = item.get("tool_call_id")
    yield own


def _openai_call(call: Any, path: str) -> dict[str, Any]:
    function = _object(_object(call, path).get("function"), f"{path}.function")
    return {
        "id": call.get("id"),
        "name": function.get("name"),
        "arguments": function.get("arguments", ""),
    }


def _from_anthropic(item: Mapping[str, Any], path: str) -> Iterator[dict[str, Any]]:
    role, content = item.get("role"), item.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        raise NotImportable(f"{path}.content", "A text, or a list of blocks.")
    words, calls = [], []
    for index, each in enumerate(blocks):
        block = _object(each, f"{path}.content[{index}]")
        kind = block.get("type")
        if kind == "text":
            words.append(block.get("text"))
        elif kind == "tool_use":
            calls.append(
                {
                    "id": block.get("id"),
                    "name": block.get("name"),
                    "arguments": json.dumps(block.get("input", {}), ensure_ascii=False),
                }
            )
        elif kind == "tool_result":
            yield {
                "role": "tool",
                "tool_call_id": block.get("tool_use_id"),
                "content": _text(block.get("content"), f"{path}.content[{index}]"),
                "is_error": bool(block.get("is_error", False)),
            }
        elif kind not in ("thinking", "redacted_thinking"):
            raise NotImportable(
                f"{path}.content[{index}].type", f"Blocks of type {kind!r} cannot be imported."
            )
    if words or calls:
        yield {
            "role": role,
            "content": _text([{"type": "text", "text": each} for each in words], path),
            "tool_calls": calls,
        }


def _text(content: Any, path: str) -> str:
    """The text of a content: one text, or parts of which each is one."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise NotImportable(f"{path}.content", "A text, or a list of text parts.")
    texts = []
    for index, part in enumerate(content):
        text = _object(part, f"{path}.content[{index}]").get("text")
        if not isinstance(text, str):
            raise NotImportable(f"{path}.content[{index}]", "Only parts of text can be imported.")
        texts.append(text)
    return "\n\n".join(texts)


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise NotImportable(path, "An object.")
    return value

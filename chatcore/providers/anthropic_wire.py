"""Convert requests to Anthropic's Messages."""

import base64
import re
from itertools import count
from typing import Any

from chatcore.providers.base import EARLIER_MESSAGES_NOTICE, ChatMessage, Request
from chatcore.providers.provider_data import select_cache_control, select_thinking

_NOTICE_MESSAGE = {"role": "user", "content": [{"type": "text", "text": EARLIER_MESSAGES_NOTICE}]}


def build_system(request: Request) -> str | list[dict[str, Any]]:
    """Return the system text, or blocks if there is a preface or a mark of the cache.

    An empty text means that there is nothing to send: the protocol refuses empty texts.
    """
    mark = request.system_cache_control
    if not request.preface.strip() and not mark:
        return request.system if request.system.strip() else ""
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": text} for text in (request.system, request.preface) if text.strip()
    ]
    if mark and request.system.strip():
        blocks[0]["cache_control"] = mark
    return blocks


def build_messages(request: Request) -> list[dict[str, Any]]:
    """Return the messages of a request, without empty ones.

    The roles alternate and the user's comes first, as the protocol requires.
    """
    api_messages: list[dict[str, Any]] = []
    call_ids = _CallIds()
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _build_blocks(message, request.model, call_ids)
        if not blocks:
            continue
        if api_messages and api_messages[-1]["role"] == role:
            api_messages[-1]["content"] += blocks
        else:
            api_messages.append({"role": role, "content": blocks})
    if api_messages and api_messages[0]["role"] == "assistant":
        return [_NOTICE_MESSAGE, *api_messages]
    return api_messages


def build_tools(request: Request) -> list[dict[str, Any]]:
    """Return the tool definitions of a request."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.parameters,
            **({"strict": True} if tool.strict else {}),
            **({"cache_control": tool.cache_control} if tool.cache_control else {}),
        }
        for tool in request.tools
    ]


class _CallIds:
    """The ids of the calls of one request in the form that the protocol accepts.

    They have no characters that only other providers allow, and each occurs once.
    """

    def __init__(self) -> None:
        self._id_by_call: dict[str, str] = {}
        self._all_ids: set[str] = set()

    def assign_id(self, call_id: str) -> str:
        """Return a new id for a call, which its results get from now on."""
        base_id = re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)
        candidates = (f"{base_id}_{number}" if number > 1 else base_id for number in count(1))
        new_id = next(candidate for candidate in candidates if candidate not in self._all_ids)
        self._id_by_call[call_id] = new_id
        self._all_ids.add(new_id)
        return new_id

    def find_result_id(self, call_id: str) -> str:
        """Return the id of the newest call that had this id."""
        return self._id_by_call.get(call_id) or self.assign_id(call_id)


def _build_blocks(message: ChatMessage, model: str, call_ids: _CallIds) -> list[dict[str, Any]]:
    """Return a message as content blocks, none if it is empty: the protocol refuses empty texts."""
    blocks = _build_content_blocks(message, call_ids)
    mark = select_cache_control(message.provider_data)
    if mark and blocks:
        blocks[-1]["cache_control"] = mark
    return [*select_thinking(message.provider_data, model), *blocks] if blocks else []


def _build_content_blocks(message: ChatMessage, call_ids: _CallIds) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [_build_tool_result(message, call_ids)]
    blocks = [_build_image(image.media_type, image.data) for image in message.images]
    if message.content.strip():
        blocks.append({"type": "text", "text": message.content})
    blocks += [
        {
            "type": "tool_use",
            "id": call_ids.assign_id(call.id),
            "name": call.sent_name,
            "input": call.parse_arguments(),
        }
        for call in message.tool_calls
    ]
    return blocks


def _build_tool_result(message: ChatMessage, call_ids: _CallIds) -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": call_ids.find_result_id(message.tool_call_id),
    }
    has_text = bool(message.content.strip())
    if message.images:
        blocks = [_build_image(image.media_type, image.data) for image in message.images]
        if has_text:
            blocks.insert(0, {"type": "text", "text": message.content})
        result["content"] = blocks
    elif has_text:
        result["content"] = message.content
    if message.is_error:
        result["is_error"] = True
    return result


def _build_image(media_type: str, data: bytes) -> dict[str, Any]:
    return {
        "type": "image",
        "source": {
            "type": "base64",
            "media_type": media_type,
            "data": base64.b64encode(data).decode(),
        },
    }

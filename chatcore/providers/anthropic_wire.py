"""Convert requests to Anthropic's Messages."""

import base64
from dataclasses import replace
from itertools import islice
from typing import Any

from chatcore.providers.base import ChatMessage, Request
from chatcore.providers.normal_form import CallIds, build_normal_form
from chatcore.providers.provider_data import (
    THOUGHT,
    select_cache_control,
    select_order,
    select_thinking,
)
from chatcore.providers.tool_schemas import build_schema


def normalize(request: Request) -> Request:
    """Return a request that every server takes.

    Neighbors of one role may be left: `build_messages` puts their blocks into one message.
    """
    messages = build_normal_form(
        request.messages, has_tools=bool(request.tools), has_result_images=True
    )
    return replace(request, messages=messages)


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
    """Return the messages of a request. The roles alternate, and the user's comes first."""
    api_messages: list[dict[str, Any]] = []
    call_ids = CallIds()
    for message in normalize(request).messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _build_blocks(message, request.model, call_ids)
        if api_messages and api_messages[-1]["role"] == role:
            api_messages[-1]["content"] += blocks
        else:
            api_messages.append({"role": role, "content": blocks})
    return api_messages


def build_tools(request: Request, *, has_simple_schemas: bool = False) -> list[dict[str, Any]]:
    """Return the tool definitions of a request."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": build_schema(tool, is_simple=has_simple_schemas),
            **({"strict": True} if tool.strict else {}),
            **({"cache_control": tool.cache_control} if tool.cache_control else {}),
        }
        for tool in request.tools
    ]


def _build_blocks(message: ChatMessage, model: str, call_ids: CallIds) -> list[dict[str, Any]]:
    """Return a message as content blocks."""
    if message.role == "tool":
        blocks = [_build_tool_result(message, call_ids)]
    elif message.role == "assistant":
        blocks = order_blocks(
            message.content,
            select_thinking(message.provider_data, model),
            _build_calls(message, call_ids),
            select_order(message.provider_data, model),
        )
    else:
        blocks = [_build_image(image.media_type, image.data) for image in message.images]
        blocks += _build_texts(message.content)
    mark = select_cache_control(message.provider_data)
    if mark:
        blocks[-1] = {**blocks[-1], "cache_control": mark}
    return blocks


def order_blocks(
    text: str,
    thoughts: list[dict[str, Any]],
    calls: list[dict[str, Any]],
    order: list[str | int],
) -> list[dict[str, Any]]:
    """Return the blocks of an answer in the order in which they came.

    A signed thought is bound to what stood before it. An order that does not fit the answer, whose
    text may have been cleaned when it was stored, is not followed.
    """
    lengths = [each for each in order if isinstance(each, int)]
    if sum(lengths) != len(text) or order.count(THOUGHT) != len(thoughts):
        return [*thoughts, *_build_texts(text), *calls]
    blocks: list[dict[str, Any]] = []
    open_thoughts, open_calls, position = iter(thoughts), iter(calls), 0
    for each in order:
        if isinstance(each, int):
            blocks += _build_texts(text[position : position + each])
            position += each
        else:
            blocks += islice(open_thoughts if each == THOUGHT else open_calls, 1)
    return [*blocks, *open_calls]


def _build_texts(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _build_calls(message: ChatMessage, call_ids: CallIds) -> list[dict[str, Any]]:
    return [
        {
            "type": "tool_use",
            "id": call_ids.assign_id(call),
            "name": call.sent_name,
            "input": call.parse_arguments(),
        }
        for call in message.tool_calls
    ]


def _build_tool_result(message: ChatMessage, call_ids: CallIds) -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": call_ids.take_result_id(),
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

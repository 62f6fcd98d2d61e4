"""Convert requests to OpenAI's chat completions."""

import base64
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from chatcore.providers.base import (
    EARLIER_MESSAGES_NOTICE,
    ChatMessage,
    Image,
    Request,
    Tool,
    ToolCall,
)
from chatcore.providers.provider_data import select_extras, select_reasoning

_TOOL_IMAGES_NOTICE = "(Images of the tool results above.)"


def build_messages(request: Request) -> list[dict[str, Any]]:
    """Return the system texts and the messages of a request, without empty ones."""
    api_messages: list[dict[str, Any]] = [
        {"role": "system", "content": text}
        for text in (request.system, request.preface)
        if text.strip()
    ]
    filled_messages = [message for message in request.messages if _has_content(message)]
    messages = _merge_asides(_separate_tool_images(filled_messages))
    if messages and messages[0].tool_calls:
        # Gemini refuses a request whose first message is a tool call.
        notice = ChatMessage(role="user", content=EARLIER_MESSAGES_NOTICE, aside=True)
        messages.insert(0, notice)
    user_indices = [
        index
        for index, message in enumerate(messages)
        if message.role == "user" and not message.aside
    ]
    last_user_index = user_indices[-1] if user_indices else -1
    for index, message in enumerate(messages):
        in_turn = index > last_user_index
        api_messages.append(_build_message(message, request.model, in_turn=in_turn))
    return api_messages


def build_tools(request: Request) -> list[dict[str, Any]]:
    """Return the tool definitions of a request."""
    return [{"type": "function", "function": _build_function(tool)} for tool in request.tools]


def _build_function(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if tool.strict:  # otherwise left out, because not every server knows it
        function["strict"] = True
    return function


def _separate_tool_images(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Move the images of tool results to a user message after them.

    The protocol's tool results hold only text.
    """
    output_messages: list[ChatMessage] = []
    images: tuple[Image, ...] = ()
    for message in [*messages, None]:
        if images and (message is None or message.role != "tool"):
            output_messages.append(
                ChatMessage(role="user", content=_TOOL_IMAGES_NOTICE, images=images, aside=True)
            )
            images = ()
        if message is not None:
            images += message.images if message.role == "tool" else ()
            output_messages.append(message)
    return output_messages


def _merge_asides(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Merge each aside with a user message next to it.

    The chat templates of some servers refuse two user messages in a row.
    """
    output_messages: list[ChatMessage] = []
    for message in messages:
        last_message = output_messages[-1] if output_messages else None
        if last_message is None or not _can_merge(last_message, message):
            output_messages.append(message)
            continue
        texts = (last_message.content, message.content)
        output_messages[-1] = replace(
            last_message,
            content="\n\n".join(text for text in texts if text),
            images=(*last_message.images, *message.images),
            aside=last_message.aside and message.aside,
        )
    return output_messages


def _can_merge(first: ChatMessage, second: ChatMessage) -> bool:
    return first.role == second.role == "user" and (first.aside or second.aside)


def _has_content(message: ChatMessage) -> bool:
    if message.role == "tool":
        return True
    return bool(message.content or message.tool_calls or message.images)


def _build_message(message: ChatMessage, model: str, *, in_turn: bool) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if message.role == "assistant":
        return _build_answer(message, model, in_turn=in_turn)
    if not message.images:
        return {"role": "user", "content": message.content}
    text = [{"type": "text", "text": message.content}] if message.content else []
    return {"role": "user", "content": text + [_build_image(image) for image in message.images]}


def _build_answer(message: ChatMessage, model: str, *, in_turn: bool) -> dict[str, Any]:
    """Return an earlier answer.

    Its reasoning is sent back only while its turn runs, and only to the model that wrote it.
    """
    answer: dict[str, Any] = {"role": "assistant", "content": message.content or None}
    if not message.tool_calls:
        return answer
    extras = select_extras(message.provider_data, model)
    answer["tool_calls"] = [_build_call(call, extras.get(call.id)) for call in message.tool_calls]
    reasoning = select_reasoning(message.provider_data, model) if in_turn else ""
    if reasoning:
        answer["reasoning_content"] = reasoning
    return answer


def _build_call(call: ToolCall, extra: dict[str, Any] | None) -> dict[str, Any]:
    # Servers that render chat templates fail on arguments that are not a JSON object, so broken
    # ones are not sent back as the model wrote them.
    function = {"name": call.sent_name, "arguments": json.dumps(call.parse_arguments())}
    api_call: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    if extra:
        api_call["extra_content"] = extra
    return api_call


def _build_image(image: Image) -> dict[str, Any]:
    data = base64.b64encode(image.data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}

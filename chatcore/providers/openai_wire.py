"""Convert requests to OpenAI's chat completions."""

import base64
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from chatcore.providers.base import ChatMessage, Image, Request, Tool, ToolCall
from chatcore.providers.dialects import Dialect
from chatcore.providers.normal_form import CallIds, build_normal_form
from chatcore.providers.provider_data import (
    Reasoning,
    select_extras,
    select_reasoning,
    select_tagged_thoughts,
)
from chatcore.providers.tool_schemas import build_schema

_USUAL_DIALECT = Dialect()
# Google names this value for calls that its own models did not make.
_FOREIGN_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}


def normalize(request: Request, dialect: Dialect = _USUAL_DIALECT) -> Request:
    """Return a request that every server takes: one system text, and roles that alternate.

    The templates of many models refuse a second system text, and two messages of one role in a row.
    Two answers may still follow each other here; `build_messages` joins them.
    """
    messages = build_normal_form(
        request.messages,
        has_tools=bool(request.tools),
        has_result_images=False,
        max_calls=dialect.max_calls,
    )
    system = "\n\n".join(text for text in (request.system, request.preface) if text.strip())
    return replace(request, system=system, preface="", messages=_join_user_messages(messages))


def build_messages(request: Request, dialect: Dialect = _USUAL_DIALECT) -> list[dict[str, Any]]:
    """Return the system text and the messages of a request, as a server's dialect wants them."""
    request = normalize(request, dialect)
    api_messages: list[dict[str, Any]] = []
    if request.system:
        api_messages.append({"role": "system", "content": request.system})
    call_ids = CallIds(has_names=dialect.has_named_call_ids)
    for message in request.messages:
        api_message = _build_message(message, request.model, dialect, call_ids)
        if message.role == "assistant" and api_messages[-1]["role"] == "assistant":
            _join_answers(api_messages[-1], api_message)
        else:
            api_messages.append(api_message)
    return api_messages


def build_tools(request: Request, dialect: Dialect = _USUAL_DIALECT) -> list[dict[str, Any]]:
    """Return the tool definitions of a request."""
    return [
        {"type": "function", "function": _build_function(tool, dialect)} for tool in request.tools
    ]


def _build_function(tool: Tool, dialect: Dialect) -> dict[str, Any]:
    function: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": build_schema(tool, is_simple=dialect.has_simple_schemas),
    }
    if tool.strict:  # otherwise left out, because not every server knows it
        function["strict"] = True
    return function


def _join_user_messages(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Join neighbors in the role of the user."""
    output_messages: list[ChatMessage] = []
    for message in messages:
        last_message = output_messages[-1] if output_messages else None
        if last_message is None or not last_message.role == message.role == "user":
            output_messages.append(message)
            continue
        texts = (last_message.content, message.content)
        output_messages[-1] = replace(
            last_message,
            content="\n\n".join(text for text in texts if text.strip()),
            images=(*last_message.images, *message.images),
            files=(*last_message.files, *message.files),
            seq=message.seq if last_message.seq is None else last_message.seq,
            pinned=last_message.pinned or message.pinned,
            aside=last_message.aside and message.aside,
        )
    return output_messages


def _build_message(
    message: ChatMessage, model: str, dialect: Dialect, call_ids: CallIds
) -> dict[str, Any]:
    if message.role == "tool":
        call_id = call_ids.take_result_id()
        return {"role": "tool", "tool_call_id": call_id, "content": message.content}
    if message.role == "assistant":
        return _build_answer(message, model, dialect, call_ids)
    if not message.images:
        return {"role": "user", "content": message.content}
    has_text = bool(message.content.strip())
    text = [{"type": "text", "text": message.content}] if has_text else []
    return {"role": "user", "content": text + [_build_image(image) for image in message.images]}


def _build_answer(
    message: ChatMessage, model: str, dialect: Dialect, call_ids: CallIds
) -> dict[str, Any]:
    """Return an earlier answer, with what only the model that wrote it may have back.

    Beside calls the text may be empty, but never null, which LM Studio refuses and some templates
    write as a word; a few servers refuse the empty text, and get none.
    """
    text = message.content if message.content.strip() else ""
    text = select_tagged_thoughts(message.provider_data, model) + text
    answer: dict[str, Any] = {"role": "assistant"}
    if text or dialect.has_empty_texts:
        answer["content"] = text
    if message.tool_calls:
        answer["tool_calls"] = _build_calls(message, model, dialect, call_ids)
    if dialect.reasoning != "none" and (dialect.has_reasoned_texts or not text):
        reasoning = select_reasoning(message.provider_data, model)
        answer |= _build_reasoning(message, reasoning, dialect)
    return answer


def _build_reasoning(
    message: ChatMessage, reasoning: Reasoning, dialect: Dialect
) -> dict[str, Any]:
    """Return what the model wants back of its reasoning.

    DeepSeek, Kimi and others want it with all calls, also of earlier turns, and an empty text where
    another model made them; the rest ignores it there. OpenRouter wants the details of models that
    sign them.
    """
    if reasoning.details:
        return {"reasoning_details": list(reasoning.details)}
    if dialect.reasoning == "all":
        return {reasoning.field or dialect.reasoning_field: reasoning.text}
    if message.tool_calls and reasoning.text:
        return {reasoning.field or dialect.reasoning_field: reasoning.text}
    return {}


def _join_answers(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Add an answer to the one before it, which has no calls: their results would follow it."""
    for name, value in second.items():
        if name != "role" and isinstance(value, str):
            first[name] = "\n\n".join(text for text in (first.get(name), value) if text)
        elif isinstance(value, list):
            first[name] = first.get(name, []) + value


def _build_calls(
    message: ChatMessage, model: str, dialect: Dialect, call_ids: CallIds
) -> list[dict[str, Any]]:
    has_extras = dialect.reasoning != "none" and dialect.keeps_signatures
    extras = select_extras(message.provider_data, model) if has_extras else {}
    calls = [
        _build_call(call, call_ids.assign_id(call), extras.get(call.id))
        for call in message.tool_calls
    ]
    # Gemini signs the first of parallel calls alone, and wants a signature from every model.
    if dialect.needs_signatures and not any("extra_content" in call for call in calls):
        calls[0]["extra_content"] = _FOREIGN_SIGNATURE
    return calls


def _build_call(call: ToolCall, sent_id: str, extra: dict[str, Any] | None) -> dict[str, Any]:
    # Servers that render chat templates fail on arguments that are not a JSON object, so broken
    # ones are not sent back as the model wrote them.
    function = {"name": call.sent_name, "arguments": json.dumps(call.parse_arguments())}
    api_call: dict[str, Any] = {"id": sent_id, "type": "function", "function": function}
    if extra:
        api_call["extra_content"] = extra
    return api_call


def _build_image(image: Image) -> dict[str, Any]:
    data = base64.b64encode(image.data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}

"""Format messages as items: those of an answer, and those of an input."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from chatcore.contrib.compat.custom_tools import read_text
from chatcore.contrib.compat.responses import ids
from chatcore.contrib.compat.responses.mcp import items as mcp_items
from chatcore.contrib.compat.sealed_data import seal
from chatcore.models import Attachment, Message
from chatcore.providers.base import ToolCall
from chatcore.turns.client_tools import CLIENT_FORM

Item = dict[str, Any]
# By the names of tools: the type, the namespace and the name that a client has for each.
ClientForms = Mapping[str, Mapping[str, str]]
ItemStatus = Literal["in_progress", "completed", "incomplete"]

# By the type of a tool: what the id of a call begins with, and the type of the call.
CALL_TYPES = {
    "function": ("fc", "function_call"),
    "custom": ("ctc", "custom_tool_call"),
    "tool_search": ("tsc", "tool_search_call"),
}
RESULT_TYPES = {"custom": "custom_tool_call_output"}


@dataclass(frozen=True, kw_only=True)
class ReasoningForm:
    """How a response shows reasoning: as a summary or as it is, and sealed to be sent back."""

    is_summary: bool = False
    is_sealed: bool = False


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One message of the model, stored or not.

    `calls` are those that the client runs, and `server_items` those of MCP servers. `forms` are
    those of the calls that the client knows in another form, by the names of their tools.
    """

    stem: str
    content: str = ""
    reasoning: str = ""
    calls: Sequence[ToolCall] = ()
    forms: ClientForms = field(default_factory=dict)
    server_items: Sequence[Item] = ()
    status: ItemStatus = "completed"
    provider_data: Mapping[str, object]


def build_answer_items(answer: Answer, form: ReasoningForm) -> list[Item]:
    """Return the items of one message of the model: its reasoning, its text and its calls."""
    items: list[Item] = []
    if answer.reasoning or (form.is_sealed and answer.provider_data):
        items.append(build_reasoning_item(answer, form))
    if answer.content:
        items.append(build_text_item(answer))
    for index, call in enumerate(answer.calls):
        items.append(build_call_item(answer.stem, index, call, answer.forms.get(call.name)))
    return [*items, *answer.server_items]


def build_reasoning_item(answer: Answer, form: ReasoningForm) -> Item:
    """Return the item of an answer's reasoning.

    Without words it holds what else the provider wants back, as the signatures of calls.
    """
    item: Item = {"id": f"rs_{answer.stem}", "type": "reasoning", "summary": []}
    if not answer.reasoning:
        pass
    elif form.is_summary:
        item["summary"] = [{"type": "summary_text", "text": answer.reasoning}]
    else:
        item["content"] = [{"type": "reasoning_text", "text": answer.reasoning}]
    if form.is_sealed:
        item["encrypted_content"] = seal(answer.provider_data, reasoning=answer.reasoning)
    return item


def build_text_item(answer: Answer) -> Item:
    """Return the item of an answer's text."""
    return {
        "id": f"msg_{answer.stem}",
        "type": "message",
        "status": answer.status,
        "role": "assistant",
        "phase": "commentary" if answer.calls or answer.server_items else "final_answer",
        "content": [build_text_part(answer.content)],
    }


def build_text_part(text: str) -> Item:
    """Return a part of an answer's text."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def build_call_item(
    stem: str, index: int, call: ToolCall, form: Mapping[str, str] | None = None
) -> Item:
    """Return the item of a call that the client runs, in the form that the client knows."""
    form = form or {"type": "function", "name": call.name}
    prefix, type = CALL_TYPES[form["type"]]
    item: Item = {
        "id": ids.build_call_item_id(stem, index, prefix),
        "type": type,
        "status": "completed",
        "call_id": call.id,
    }
    if form["type"] == "tool_search":
        return item | {"execution": "client", "arguments": call.parse_arguments()}
    item["name"] = form["name"]
    if form.get("namespace"):
        item["namespace"] = form["namespace"]
    if form["type"] == "custom":
        return item | {"input": read_text(call)}
    return item | {"arguments": call.arguments}


def list_forms(tools: Iterable[Mapping[str, Any]]) -> ClientForms:
    """Return how the client knows the tools that it has in another form than a function's."""
    return {tool["name"]: tool[CLIENT_FORM] for tool in tools if CLIENT_FORM in tool}


def build_stored_items(messages: Iterable[Message], *, has_images: bool = False) -> list[Item]:
    """Return stored messages as items, in their order.

    Calls of built-in tools and their results are left out: clients cannot run them. The bytes of
    images are read with `has_images` alone.
    """
    items: list[Item] = []
    for message in messages:
        stem = ids.build_stem(message.session_id, message.seq)
        if message.role == Message.Role.ASSISTANT:
            answer = build_stored_answer(message, is_whole=True)
            items += build_answer_items(answer, ReasoningForm())
        elif message.role == Message.Role.TOOL and is_client_result(message):
            items.append(_build_result_item(message, stem))
        elif message.role == Message.Role.USER:
            items.append(_build_question_item(message, stem, has_images=has_images))
    return items


def build_stored_answer(
    message: Message, *, status: ItemStatus = "completed", is_whole: bool = False
) -> Answer:
    """Return a stored message of the model without the calls of built-in tools.

    With `is_whole` it has the calls that a person allowed later.
    """
    if message.status == Message.Status.INTERRUPTED:
        status = "incomplete"
    return Answer(
        stem=ids.build_stem(message.session_id, message.seq),
        content=message.content,
        reasoning=message.reasoning,
        calls=list_client_calls(message),
        forms=list_forms(message.turn.tools) if message.turn else {},
        server_items=mcp_items.build_items(mcp_items.load_server_calls(message), is_whole=is_whole),
        status=status,
        provider_data=message.provider_data,
    )


def list_client_calls(message: Message) -> tuple[ToolCall, ...]:
    """Return the calls of a message that the client runs; of an imported one, all."""
    calls = tuple(ToolCall(**call) for call in message.tool_calls)
    if message.turn is None:
        return calls
    client_names = {tool["name"] for tool in message.turn.tools}
    return tuple(call for call in calls if call.name in client_names)


def is_client_result(message: Message) -> bool:
    """Return True if the client ran the tool of this result."""
    if message.turn is None:
        return True
    return message.tool_name in {tool["name"] for tool in message.turn.tools}


def _build_result_item(message: Message, stem: str) -> Item:
    forms = list_forms(message.turn.tools) if message.turn else {}
    form = forms.get(message.tool_name, {})
    return {
        "id": f"fco_{stem}",
        "type": RESULT_TYPES.get(form.get("type", ""), "function_call_output"),
        "status": "completed",
        "call_id": message.tool_call_id,
        "output": message.content,
    }


def _build_question_item(message: Message, stem: str, *, has_images: bool) -> Item:
    parts: list[Item] = []
    if message.content:
        parts.append({"type": "input_text", "text": message.content})
    files = message.attachments.filter(kind=Attachment.Kind.FILE).order_by("created_at", "id")
    parts += [_build_file_part(file, has_images=has_images) for file in files]
    return {
        "id": f"msg_{stem}",
        "type": "message",
        "status": "completed",
        "role": "user",
        "content": parts,
    }


def _build_file_part(attachment: Attachment, *, has_images: bool) -> Item:
    if not attachment.media_type.startswith("image/"):
        return {"type": "input_file", "filename": attachment.name}
    url = None
    if has_images:
        data = base64.b64encode(bytes(attachment.data)).decode()
        url = f"data:{attachment.media_type};base64,{data}"
    return {"type": "input_image", "image_url": url, "detail": "auto"}

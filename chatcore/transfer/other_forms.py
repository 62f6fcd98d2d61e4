"""Write a session as LibreChat and Open WebUI read it: a tree with all versions, and the files."""

import base64
import html
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal
from uuid import NAMESPACE_URL, UUID, uuid5

from chatcore.files import output_store
from chatcore.models import Attachment, Message, Session

OtherForm = Literal["librechat", "openwebui"]
OTHER_FORMS: tuple[OtherForm, ...] = ("librechat", "openwebui")

_NO_PARENT = "00000000-0000-0000-0000-000000000000"  # LibreChat's
_STREAMING = Message.Status.STREAMING


@dataclass(eq=False)
class _Node:
    """A message in the tree, with the results of the calls that it made."""

    id: str
    message: Message
    parent: "_Node | None"
    children: list["_Node"] = field(default_factory=list)
    results: dict[str, Message] = field(default_factory=dict)
    files: list[Attachment] = field(default_factory=list)


def export_in_form(session: Session, form: OtherForm) -> object:
    """Return the session as JSON values that the other program imports."""
    nodes = _build_tree(session)
    if form == "librechat":
        return _write_librechat(session, nodes)
    return [_write_openwebui(session, nodes)]


def _build_tree(session: Session) -> list[_Node]:
    rows = session.messages.exclude(status=_STREAMING).order_by("seq")
    nodes: list[_Node] = []
    by_seq: dict[int, _Node] = {}
    last: dict[UUID | None, _Node] = {}  # of each branch
    for row in rows.prefetch_related("attachments").iterator(chunk_size=500):
        before = last.get(row.branch) or by_seq.get(row.branch_after or 0)
        if row.role == Message.Role.TOOL:
            if before:
                before.results[row.tool_call_id] = row
                by_seq[row.seq] = last[row.branch] = before
            continue
        name = f"{session.pk}/{row.seq}"
        files = [file for file in row.attachments.all() if file.kind == Attachment.Kind.FILE]
        node = _Node(id=str(uuid5(NAMESPACE_URL, name)), message=row, parent=before, files=files)
        if before:
            before.children.append(node)
        nodes.append(node)
        by_seq[row.seq] = last[row.branch] = node
    return nodes


def _write_librechat(session: Session, nodes: list[_Node]) -> dict[str, object]:
    return {
        "conversationId": str(session.pk),
        "endpoint": "openAI",
        "title": session.title,
        "exportAt": session.updated_at.isoformat(),
        "branches": True,
        "recursive": False,
        "options": {
            "endpoint": "openAI",
            "model": session.model.name if session.model else None,
            "promptPrefix": session.system_prompt or None,
        },
        "messages": [_write_librechat_message(session, node) for node in nodes],
    }


def _write_librechat_message(session: Session, node: _Node) -> dict[str, object]:
    row = node.message
    is_question = row.role == Message.Role.USER
    time = row.created_at.isoformat()
    values: dict[str, object] = {
        "messageId": node.id,
        "parentMessageId": node.parent.id if node.parent else _NO_PARENT,
        "conversationId": str(session.pk),
        "isCreatedByUser": is_question,
        "sender": "User" if is_question else row.model or "Assistant",
        "text": row.content,
        "model": None if is_question else row.model.split("/")[-1] or None,
        "createdAt": time,
        "updatedAt": time,
        "error": row.status == Message.Status.FAILED,
        "unfinished": row.status == Message.Status.INTERRUPTED,
    }
    parts = list(_list_librechat_parts(node))
    if len(parts) > 1 or (parts and parts[0]["type"] != "text"):
        values["content"] = parts
    if node.files:
        values["files"] = [
            {"filename": file.name, "type": file.media_type, "text": file.text or None}
            for file in node.files
        ]
    return values


def _list_librechat_parts(node: _Node) -> Iterator[dict[str, object]]:
    row = node.message
    if row.reasoning:
        yield {"type": "think", "think": row.reasoning}
    if row.content:
        yield {"type": "text", "text": row.content}
    for call in row.tool_calls:
        result = node.results.get(call["id"])
        yield {
            "type": "tool_call",
            "tool_call": {
                "id": call["id"],
                "name": call["name"],
                "args": call["arguments"],
                "type": "tool_call",
                "progress": 1,
                "output": result.content if result else "",
            },
        }


def _write_openwebui(session: Session, nodes: list[_Node]) -> dict[str, object]:
    current = [node for node in nodes if node.message.branch is None]
    messages = {node.id: _write_openwebui_message(node) for node in nodes}
    model = session.model.name if session.model else ""
    created_at = int(session.created_at.timestamp())
    return {
        "id": str(session.pk),
        "title": session.title,
        "created_at": created_at,
        "updated_at": int(session.updated_at.timestamp()),
        "archived": session.archived,
        "pinned": session.pinned,
        "meta": {"tags": []},
        "chat": {
            "title": session.title,
            "models": [model] if model else [],
            "system": session.system_prompt,
            "params": {},
            "history": {
                "currentId": current[-1].id if current else None,
                "messages": messages,
            },
            "messages": [messages[node.id] for node in current],
            "tags": [],
            "timestamp": created_at * 1000,
            "files": [],
        },
    }


def _write_openwebui_message(node: _Node) -> dict[str, object]:
    row = node.message
    values: dict[str, object] = {
        "id": node.id,
        "parentId": node.parent.id if node.parent else None,
        "childrenIds": [child.id for child in node.children],
        "role": row.role,
        "content": "\n".join([*_list_openwebui_details(node), row.content]),
        "timestamp": int(row.created_at.timestamp()),
    }
    if row.role == Message.Role.ASSISTANT:
        values |= {"model": row.model.split("/")[-1], "done": True}
    if node.files:
        values["files"] = [_write_openwebui_file(file) for file in node.files]
    return values


def _list_openwebui_details(node: _Node) -> Iterator[str]:
    """Yield thoughts and calls as that program writes them into the words."""
    if node.message.reasoning:
        lines = html.escape(node.message.reasoning, quote=False).splitlines()
        thoughts = "\n".join(f"> {line}" for line in lines)
        yield (
            f'<details type="reasoning" done="true">\n<summary>Thoughts</summary>\n{thoughts}\n'
            "</details>"
        )
    for call in node.message.tool_calls:
        result = node.results.get(call["id"])
        values = {
            "id": call["id"],
            "name": call["name"],
            "arguments": json.dumps(call["arguments"], ensure_ascii=False),
            "result": json.dumps(result.content if result else "", ensure_ascii=False),
        }
        attributes = " ".join(f'{name}="{html.escape(text)}"' for name, text in values.items())
        yield (
            f'<details type="tool_calls" done="true" {attributes}>\n'
            "<summary>Tool Executed</summary>\n</details>"
        )


def _write_openwebui_file(file: Attachment) -> dict[str, object]:
    if file.media_type.startswith("image/"):
        try:
            data = base64.b64encode(output_store.read_bytes(file)).decode()
        except output_store.OutputLost:
            data = ""
        return {"type": "image", "name": file.name, "url": f"data:{file.media_type};base64,{data}"}
    return {
        "type": "file",
        "name": file.name,
        "file": {
            "filename": file.name,
            "meta": {"content_type": file.media_type, "size": file.size},
            "data": {"content": file.text},
        },
    }

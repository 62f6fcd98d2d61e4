"""Chatbox: an object with a key for each session; older ones with one list, newer as a ZIP."""

import json
from collections.abc import Iterator, Mapping

from chatcore.contrib.imports.conversation import (
    Call,
    ChatFile,
    ChatMessage,
    Conversation,
    Node,
    list_times,
)
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import join_words, to_dict, to_text
from chatcore.contrib.imports.products.base import Reader, Source, parse_text, read_role
from chatcore.transfer.times import parse_time


class ChatboxReader(Reader):
    """Sessions of Chatbox, each thread a chat."""

    key = "chatbox"
    name = "Chatbox"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return (
            "__exported_items" in sample.keys
            or "chat-sessions-list" in sample.keys
            or any(to_dict(item).get("__source") == "chatbox" for item in sample.items)
            or (member.base_name == "session.json" and {"id", "messages"} <= sample.keys)
        )

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        session = value.get("session")
        if isinstance(session, dict):
            sessions = [session]
        elif "messages" in value:
            sessions = [value]
        else:
            sessions = [
                to_dict(parse_text(value[key])) for key in value if key.startswith("session:")
            ]
            sessions += to_items(parse_text(value.get("chat-sessions")))
        for session in sessions:
            yield from _read_session(session)


def _read_session(session: Mapping[str, object]) -> Iterator[Conversation]:
    name = to_text(session.get("name"))
    session_id = to_text(session.get("id"))
    threads = to_items(session.get("threads"))
    forks = to_dict(session.get("messageForksHash"))
    title = to_text(session.get("threadName"))
    yield _read_thread(
        session_id,
        f"{name} / {title}" if threads and title else name,
        to_items(session.get("messages")),
        forks,
        is_pinned=session.get("starred") is True,
    )
    for thread in threads:
        yield _read_thread(
            f"{session_id}/{thread.get('id')}",
            f"{name} / {to_text(thread.get('name'))}",
            to_items(thread.get("messages")),
            forks,
        )


def _read_thread(
    chat_id: str,
    title: str,
    messages: list[dict[str, object]],
    forks: Mapping[str, object],
    *,
    is_pinned: bool = False,
) -> Conversation:
    prompt = ""
    if messages and messages[0].get("role") == "system":
        prompt = _build_message(messages[0]).text
        messages = messages[1:]
    nodes = _link(messages, None)
    leaf = nodes[-1].id if nodes else None
    known = {node.id for node in nodes}
    waiting = [node.id for node in nodes]
    while waiting:
        fork_id = waiting.pop(0)
        for other in to_items(to_dict(forks.get(fork_id)).get("lists")):
            rest = [m for m in to_items(other.get("messages")) if m.get("id") not in known]
            added = _link(rest, fork_id)
            known |= {node.id for node in added}
            waiting += [node.id for node in added]
            nodes += added
    times = list_times(nodes)
    return Conversation(
        id=chat_id,
        title=title,
        created_at=min(times, default=None),
        updated_at=max(times, default=None),
        system_prompt=prompt,
        is_pinned=is_pinned,
        nodes=nodes,
        leaf=leaf,
    )


def _link(messages: list[dict[str, object]], parent: str | None) -> list[Node]:
    nodes = []
    for index, item in enumerate(messages):
        node_id = to_text(item.get("id")) or f"{parent}/{index}"
        nodes.append(Node(id=node_id, parent=parent, message=_build_message(item)))
        parent = node_id
    return nodes


def _build_message(item: Mapping[str, object]) -> ChatMessage:
    role = to_text(item.get("role"))
    built = ChatMessage(
        role=read_role(role),
        text=to_text(item.get("content")),
        reasoning=to_text(item.get("reasoningContent")),
        created_at=parse_time(item.get("timestamp")),
        model=to_text(item.get("model")) if role == "assistant" else "",
    )
    for part in to_items(item.get("contentParts")):
        kind = part.get("type")
        if kind in ("text", "info"):
            built.text = join_words(built.text, to_text(part.get("text")))
        elif kind == "reasoning":
            built.reasoning = join_words(built.reasoning, to_text(part.get("text")))
        elif kind == "image":
            built.files.append(ChatFile(name=to_text(part.get("storageKey")) or "picture"))
        elif kind == "tool-call":
            if not built.calls:
                built.lead, built.text = built.text, ""
            built.calls.append(
                Call(
                    id=to_text(part.get("toolCallId")),
                    name=to_text(part.get("toolName")) or "tool",
                    arguments=json.dumps(part.get("args") or {}, ensure_ascii=False),
                    result=_write(part.get("result")),
                )
            )
    for file in [*to_items(item.get("files")), *to_items(item.get("pictures"))]:
        built.files.append(ChatFile(name=to_text(file.get("name")) or "file"))
    links = [to_text(link.get("url")) for link in to_items(item.get("links"))]
    built.text = join_words(built.text, *[link for link in links if link])
    return built


def _write(value: object) -> str | None:
    return value if isinstance(value, str | None) else json.dumps(value, ensure_ascii=False)

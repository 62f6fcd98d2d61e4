"""LibreChat: a file for each chat, flat in `messages` or as a tree in `messagesTree`."""

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
from chatcore.contrib.imports.json_items import join_words, to_dict, to_list, to_text
from chatcore.contrib.imports.products.base import Reader, Source, split_thoughts
from chatcore.transfer.times import parse_time


class LibreChatReader(Reader):
    """Chats of LibreChat."""

    key = "librechat"
    name = "LibreChat"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return (
            any(
                "conversationId" in item and ("messagesTree" in item or "messages" in item)
                for item in sample.items
            )
            or {"conversationId", "endpoint"} <= sample.keys
        )

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        items = _flatten(to_list(value.get("messagesTree")) or to_list(value.get("messages")))
        nodes: list[Node] = []
        is_tree = any(item.get("parentMessageId") for _, item in items)
        for index, (parent, item) in enumerate(items):
            named_parent = to_text(item.get("parentMessageId"))
            if not named_parent.strip("0-"):
                named_parent = ""
            previous = nodes[-1].id if nodes else None
            nodes.append(
                Node(
                    id=to_text(item.get("messageId")) or str(index),
                    parent=parent or named_parent or (None if is_tree else previous),
                    message=_build_message(item),
                )
            )
        times = list_times(nodes)
        options = to_dict(value.get("options"))
        yield Conversation(
            id=to_text(value.get("conversationId")),
            title=to_text(value.get("title")),
            created_at=min(times, default=None),
            updated_at=max(times, default=None),
            system_prompt=to_text(options.get("promptPrefix")) or to_text(options.get("system")),
            model=to_text(options.get("model")),
            nodes=nodes,
        )


def _flatten(messages: list[object]) -> list[tuple[str | None, dict[str, object]]]:
    """Return the messages of a tree, parents first, with the id that each stands below."""
    flat: list[tuple[str | None, dict[str, object]]] = []
    waiting: list[tuple[str | None, dict[str, object]]] = [
        (None, item) for item in reversed(to_items(messages))
    ]
    while waiting:
        parent, item = waiting.pop()
        flat.append((parent, item))
        message_id = to_text(item.get("messageId")) or None
        waiting += [(message_id, child) for child in reversed(to_items(item.get("children")))]
    return flat


def _build_message(item: Mapping[str, object]) -> ChatMessage | None:
    is_question = item.get("isCreatedByUser")
    if not isinstance(is_question, bool):
        is_question = to_text(item.get("sender")).lower() == "user" or item.get("role") == "user"
    built = ChatMessage(
        role="user" if is_question else "assistant",
        created_at=parse_time(item.get("createdAt")),
        model="" if is_question else to_text(item.get("model")),
        is_interrupted=item.get("unfinished") is True and not is_question,
    )
    for part in to_list(item.get("content")):
        _add_part(built, to_dict(part))
    text = to_text(item.get("text"))
    if not built.text.strip() and not built.lead.strip() and text:
        thoughts, built.text = split_thoughts(text) if not is_question else ("", text)
        built.reasoning = join_words(built.reasoning, thoughts)
    for file in [*to_items(item.get("files")), *to_items(item.get("attachments"))]:
        name = to_text(file.get("filename")) or to_text(file.get("filepath")).rsplit("/", 1)[-1]
        words = file.get("text")
        built.files.append(
            ChatFile.from_text(name or "file.txt", words)
            if isinstance(words, str) and words
            else ChatFile(name=name or "file")
        )
    if item.get("error") is True and not is_question and not built.text.strip():
        return None
    return built


def _add_part(built: ChatMessage, part: Mapping[str, object]) -> None:
    kind = part.get("type")
    value = part.get("text") if kind == "text" else part.get("think")
    words = to_text(value) or to_text(to_dict(value).get("value"))
    if kind == "text":
        built.text = join_words(built.text, words)
    elif kind in ("think", "reasoning"):
        built.reasoning = join_words(built.reasoning, words)
    elif kind == "tool_call":
        call = to_dict(part.get("tool_call"))
        if not built.calls:
            built.lead, built.text = built.text, ""
        arguments = call.get("args") or to_dict(call.get("function")).get("arguments")
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments or {}, ensure_ascii=False)
        output = call.get("output", to_dict(call.get("function")).get("output"))
        built.calls.append(
            Call(
                id=to_text(call.get("id")),
                name=to_text(call.get("name"))
                or to_text(to_dict(call.get("function")).get("name"))
                or "tool",
                arguments=arguments,
                result=output if isinstance(output, str) else None,
            )
        )
    elif kind in ("image_file", "image_url"):
        file = to_dict(part.get("image_file"))
        path = to_text(file.get("filename")) or to_text(file.get("filepath"))
        built.files.append(ChatFile(name=path.rsplit("/", 1)[-1] or "picture"))

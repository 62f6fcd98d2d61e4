"""Mistral's Le Chat (Vibe): a bare list of messages for each chat, in no order, files beside it."""

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
from chatcore.contrib.imports.json_items import join_words, to_text
from chatcore.contrib.imports.products.base import (
    OddChat,
    Reader,
    Source,
    build_links,
    find_file,
    has_keys,
    list_links,
)
from chatcore.transfer.times import parse_time

_EXTENSIONS = {"text/markdown": "md", "text/html": "html", "slides": "md"}


class LeChatReader(Reader):
    """Chats with Le Chat."""

    key = "lechat"
    name = "Le Chat"
    is_file_a_chat = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        name = member.base_name
        is_empty_chat = (
            name.startswith("chat-") and name.endswith(".json") and sample.kind == "list"
            and not sample.items
        )  # fmt: skip
        return is_empty_chat or has_keys(sample, "chatId", "role")

    def read(self, value: object, source: Source) -> Iterator[Conversation]:
        items = sorted(to_items(value), key=lambda item: to_text(item.get("createdAt")))
        if not items:
            raise OddChat("Nothing was said in it.")
        nodes: list[Node] = []
        last_id: str | None = None
        question_id: str | None = None
        for index, item in enumerate(items):
            message = _build_message(item, source)
            # Another answer to the same question is another version of it.
            is_again = bool(item.get("version")) and message.role == "assistant"
            node = Node(
                id=to_text(item.get("id")) or str(index),
                parent=question_id if is_again and question_id else last_id,
                message=message,
            )
            nodes.append(node)
            last_id = node.id
            if message.role == "user":
                question_id = node.id
        times = list_times(nodes)
        yield Conversation(
            id=to_text(items[0].get("chatId")),
            created_at=min(times, default=None),
            updated_at=max(times, default=None),
            nodes=nodes,
            leaf=last_id,
        )


def _build_message(item: Mapping[str, object], source: Source) -> ChatMessage:
    is_question = item.get("role") == "user"
    built = ChatMessage(
        role="user" if is_question else "assistant",
        text=to_text(item.get("content")),
        created_at=parse_time(item.get("createdAt")),
    )
    chunks = to_items(item.get("contentChunks"))
    if not built.text:
        built.text = join_words(*(to_text(c.get("text")) for c in chunks if c["type"] == "text"))
    for chunk in chunks:
        if chunk.get("type") == "tool_call":
            result = chunk.get("publicResult")
            if isinstance(result, dict | list):
                result = json.dumps(result, ensure_ascii=False)
            built.calls.append(
                Call(
                    id=to_text(chunk.get("id")),
                    name=to_text(chunk.get("name")) or "tool",
                    arguments=to_text(chunk.get("publicArguments")) or "{}",
                    result=to_text(result),
                )
            )
        elif chunk.get("type") == "file_reference":
            name = to_text(chunk.get("fileAlt")) or to_text(chunk.get("fileReference"))
            built.files.append(ChatFile(name=name or "file"))
    for canvas in to_items(item.get("canvas")):
        extension = _EXTENSIONS.get(to_text(canvas.get("type")), "md")
        name = f"{to_text(canvas.get('title')) or 'canvas'}.{extension}"
        built.files.append(ChatFile.from_text(name, to_text(canvas.get("content"))))
    folder = source.member.name.removesuffix(".json") + "-files"
    for file in to_items(item.get("files")):
        name = to_text(file.get("name")) or "file"
        member = source.export.find_by_path(f"{folder.rsplit('/', 1)[-1]}/{name}")
        built.files.append(find_file(member, name))
    links = build_links(item.get("quotes"))
    if links:
        built.text = join_words(built.text, list_links(links))
    return built

"""TypingMind: `data.chats`, or a cut export with its chats in files of their own."""

from collections.abc import Iterator

from chatcore.contrib.imports.conversation import ChatMessage, Conversation, chain
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import to_text
from chatcore.contrib.imports.products.base import (
    Reader,
    Source,
    has_keys,
    read_parts,
    read_role,
    split_thoughts,
)
from chatcore.transfer.times import parse_time


class TypingMindReader(Reader):
    """Chats of TypingMind."""

    key = "typingmind"
    name = "TypingMind"
    path = ("data", "chats")
    may_be_one_chat = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        has_chats = "data" in sample.keys and '"chatID"' in sample.head
        return has_chats or has_keys(sample, "chatID", "messages")

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        messages = []
        for item in to_items(value.get("messages")):
            role = to_text(item.get("role"))
            text, files = read_parts(item.get("content"))
            thoughts, text = split_thoughts(text, role)
            messages.append(
                ChatMessage(
                    role=read_role(role),
                    text=text,
                    reasoning=thoughts,
                    files=files,
                    created_at=parse_time(item.get("createdAt")),
                    model=to_text(item.get("model")) if role == "assistant" else "",
                )
            )
        yield Conversation(
            id=to_text(value.get("chatID")) or to_text(value.get("id")),
            title=to_text(value.get("chatTitle")),
            created_at=parse_time(value.get("createdAt")),
            updated_at=parse_time(value.get("updatedAt")),
            model=to_text(value.get("model")),
            nodes=chain(messages),
        )

"""Chats in the form of OpenAI's API, in JSON Lines or in a list, and those of ShareGPT."""

from collections.abc import Iterator, Mapping

from chatcore.contrib.imports.conversation import (
    Call,
    ChatMessage,
    Conversation,
    chain,
    take_prompt,
)
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import Item, join_words, to_dict, to_text
from chatcore.contrib.imports.products.base import (
    Reader,
    Source,
    has_keys,
    read_parts,
    split_thoughts,
)
from chatcore.transfer.times import parse_time

_ROLES = {
    "human": "user",
    "user": "user",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}


class OpenAiLinesReader(Reader):
    """Lists of messages without ids, times and mostly titles."""

    key = "openai"
    name = "OpenAI messages"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return any(
            any("role" in message and ("content" in message or "tool_calls" in message)
                for message in to_items(item.get("messages")))
            or any("from" in message and "value" in message
                   for message in to_items(item.get("conversations")))
            for item in sample.items
        ) or (
            sample.kind == "list" and has_keys(sample, "role", "content")
        ) or has_keys(sample, "from", "value")  # fmt: skip

    def split(self, member: Member, sample: Sample) -> Iterator[Item]:
        is_one_chat = has_keys(sample, "role", "content") or has_keys(sample, "from", "value")
        kind = "object" if is_one_chat else sample.kind
        yield from super().split(member, Sample(kind=kind))

    def read(self, value: object, source: Source) -> Iterator[Conversation]:
        chat = value if isinstance(value, dict) else {}
        items = to_items(chat.get("messages") or chat.get("conversations") or value)
        messages = [_build_message(item) for item in items]
        prompt = take_prompt(messages)
        title = to_text(chat.get("title")) or to_text(to_dict(chat.get("metadata")).get("title"))
        yield Conversation(
            id=to_text(chat.get("id")),
            title=title,
            created_at=parse_time(chat.get("created_at")),
            updated_at=parse_time(chat.get("updated_at")),
            system_prompt=prompt,
            model=to_text(chat.get("model")),
            nodes=chain(messages),
        )


def _build_message(item: Mapping[str, object]) -> ChatMessage:
    role = _ROLES.get(to_text(item.get("role") or item.get("from")), "assistant")
    text, files = read_parts(item.get("content", item.get("value")))
    time = parse_time(item.get("created_at") or item.get("timestamp"))
    if role == "tool":
        result = Call(
            id=to_text(item.get("tool_call_id")),
            name=to_text(item.get("name")) or "tool",
            arguments="",
            result=text,
        )
        return ChatMessage(role="assistant", calls=[result], created_at=time)
    thoughts, text = split_thoughts(text, role)
    calls = [
        Call(
            id=to_text(call.get("id")),
            name=to_text(to_dict(call.get("function")).get("name")) or "tool",
            arguments=to_text(to_dict(call.get("function")).get("arguments")) or "{}",
        )
        for call in to_items(item.get("tool_calls"))
    ]
    return ChatMessage(
        role=role,
        text="" if calls else text,
        lead=text if calls else "",
        reasoning=join_words(thoughts, to_text(item.get("reasoning_content"))),
        files=files,
        calls=calls,
        created_at=time,
    )

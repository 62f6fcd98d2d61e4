"""Jan: its data folder, a folder for each chat with `thread.json` and `messages.jsonl`."""

from collections.abc import Iterator

from chatcore.contrib.imports.conversation import ChatMessage, Conversation, chain
from chatcore.contrib.imports.export_files import UNREADABLE, Member, Sample, parse_json, to_items
from chatcore.contrib.imports.json_items import join_words, to_dict, to_text
from chatcore.contrib.imports.products.base import (
    Reader,
    Source,
    has_keys,
    parse_lines,
    read_parts,
    split_thoughts,
)
from chatcore.transfer.times import parse_time

MAX_THREAD_BYTES = 1_000_000


class JanReader(Reader):
    """Chats of Jan."""

    key = "jan"
    name = "Jan"
    is_file_a_chat = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return has_keys(sample, "thread_id", "role", "content")

    def parse(self, raw: bytes) -> list[object]:
        return parse_lines(raw)

    def read(self, value: object, source: Source) -> Iterator[Conversation]:
        items = to_items(value)
        folder = source.member.name.rsplit("/", 1)[0]
        thread = _read_thread(source, folder)
        assistant = (to_items(thread.get("assistants")) or [{}])[0]
        messages = []
        for item in items:
            text, files = read_parts(item.get("content"))
            is_question = item.get("role") == "user"
            thoughts, text = ("", text) if is_question else split_thoughts(text)
            messages.append(
                ChatMessage(
                    role="user" if is_question else "assistant",
                    text=text,
                    reasoning=thoughts,
                    files=files,
                    created_at=parse_time(item.get("created_at") or item.get("created")),
                )
            )
        yield Conversation(
            id=to_text(thread.get("id")) or to_text(items[0].get("thread_id")),
            title=to_text(thread.get("title")),
            created_at=parse_time(thread.get("created")),
            updated_at=parse_time(thread.get("updated")),
            system_prompt=join_words(to_text(assistant.get("instructions"))),
            model=to_text(to_dict(assistant.get("model")).get("id")),
            is_pinned=to_dict(thread.get("metadata")).get("is_favorite") is True,
            nodes=chain(messages),
        )


def _read_thread(source: Source, folder: str) -> dict[str, object]:
    is_in_folder = "/" in source.member.name
    path = f"{folder.rsplit('/', 1)[-1]}/thread.json" if is_in_folder else "thread.json"
    member = source.export.find_by_path(path)
    try:
        return to_dict(parse_json(member.read(MAX_THREAD_BYTES))) if member else {}
    except UNREADABLE:
        return {}

"""big-AGI: a file of all chats, or of one. Messages have a text, or since 2024 fragments."""

from collections.abc import Iterator, Mapping

from chatcore.contrib.imports.conversation import (
    Call,
    ChatFile,
    ChatMessage,
    Conversation,
    chain,
    take_prompt,
)
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import join_words, to_dict, to_text
from chatcore.contrib.imports.products.base import (
    Reader,
    Source,
    build_links,
    list_links,
    read_role,
)
from chatcore.transfer.times import parse_time


class BigAgiReader(Reader):
    """Chats of big-AGI."""

    key = "bigagi"
    name = "big-AGI"
    path = ("conversations",)
    may_be_one_chat = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return any("systemPurposeId" in item and "messages" in item for item in sample.items)

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        messages = [_build_message(item) for item in to_items(value.get("messages"))]
        prompt = take_prompt(messages)
        yield Conversation(
            id=to_text(value.get("id")),
            title=to_text(value.get("userTitle")) or to_text(value.get("autoTitle")),
            created_at=parse_time(value.get("created")),
            updated_at=parse_time(value.get("updated") or value.get("created")),
            system_prompt=prompt,
            is_archived=value.get("isArchived") is True,
            nodes=chain(messages),
        )


def _build_message(item: Mapping[str, object]) -> ChatMessage:
    built = ChatMessage(
        role=read_role(item.get("role")),
        text=to_text(item.get("text")),
        created_at=parse_time(item.get("created")),
    )
    if built.role == "assistant":
        name = to_dict(item.get("generator")).get("name")
        built.model = to_text(name) or to_text(item.get("originLLM"))
    links: list[str] = []
    for fragment in to_items(item.get("fragments")):
        _add_fragment(built, fragment, links)
    if links:
        built.text = join_words(built.text, list_links(links))
    return built


def _add_fragment(built: ChatMessage, fragment: Mapping[str, object], links: list[str]) -> None:
    part = to_dict(fragment.get("part"))
    kind = part.get("pt")
    name = to_text(fragment.get("title"))
    if kind == "text":
        built.text = join_words(built.text, to_text(part.get("text")))
    elif kind == "ma":
        built.reasoning = join_words(built.reasoning, to_text(part.get("aText")))
    elif kind == "doc":
        words = to_text(to_dict(part.get("data")).get("text"))
        title = to_text(part.get("l1Title")) or to_text(part.get("ref"))
        built.files.append(ChatFile.from_text(name or title or "document.txt", words))
    elif kind in ("image_ref", "reference"):
        built.files.append(ChatFile(name=name or to_text(part.get("altText")) or "picture"))
    elif kind in ("tool_invocation", "tool_response"):
        _add_call(built, part)
    elif kind == "annotations":
        links += build_links(part.get("annotations"))


def _add_call(built: ChatMessage, part: Mapping[str, object]) -> None:
    call_id = to_text(part.get("id"))
    invocation = to_dict(part.get("invocation"))
    if invocation:
        name = to_text(invocation.get("name")) or "tool"
        arguments = to_text(invocation.get("args")) or "{}"
        built.calls.append(Call(id=call_id, name=name, arguments=arguments))
    for call in built.calls:
        if call.id == call_id and "response" in part:
            call.result = to_text(to_dict(part["response"]).get("result"))

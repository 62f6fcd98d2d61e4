"""Cherry Studio: `data.json` of a backup (version 1), and single topics (`.cherry.json`)."""

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
from chatcore.contrib.imports.products.base import (
    Reader,
    Source,
    find_file,
    parse_text,
    read_parts,
    read_role,
)
from chatcore.transfer.times import parse_time


class CherryStudioReader(Reader):
    """Topics of Cherry Studio."""

    key = "cherrystudio"
    name = "Cherry Studio"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        is_topic = any(item.get("kind") == "cherry-studio.topic" for item in sample.items)
        return is_topic or {"indexedDB", "localStorage"} <= sample.keys

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        if value.get("kind") == "cherry-studio.topic":
            yield _read_topic_file(value)
            return
        tables = to_dict(value.get("indexedDB"))
        named_topics = _read_named_topics(to_dict(value.get("localStorage")))
        blocks = {block.get("id"): block for block in to_items(tables.get("message_blocks"))}
        for topic in to_items(tables.get("topics")):
            named, prompt = named_topics.get(topic.get("id"), ({}, ""))
            yield _read_topic({**topic, **named, "messages": topic.get("messages")},
                              prompt, blocks, source)  # fmt: skip


def _read_named_topics(
    storage: Mapping[str, object],
) -> dict[object, tuple[dict[str, object], str]]:
    """Return what the assistants know of their topics: JSON in JSON in JSON."""
    stores = to_dict(parse_text(storage.get("persist:cherry-studio")))
    assistants = to_dict(parse_text(stores.get("assistants")))
    found = {}
    every = [*to_items(assistants.get("assistants")), to_dict(assistants.get("defaultAssistant"))]
    for assistant in every:
        for topic in to_items(assistant.get("topics")):
            found[topic.get("id")] = (topic, to_text(assistant.get("prompt")))
    return found


def _read_topic(
    topic: Mapping[str, object], prompt: str, blocks: Mapping[object, object], source: Source
) -> Conversation:
    nodes: list[Node] = []
    last_id: str | None = None
    answers: dict[str, str] = {}  # the shown answer to each question
    for index, item in enumerate(to_items(topic.get("messages"))):
        node_id = to_text(item.get("id")) or str(index)
        asked = to_text(item.get("askId"))
        parent = asked if asked in {node.id for node in nodes} else last_id
        nodes.append(Node(id=node_id, parent=parent, message=_build_message(item, blocks, source)))
        if not asked:
            last_id = node_id
        elif asked not in answers or item.get("foldSelected") or item.get("useful"):
            answers[asked] = last_id = node_id
    times = list_times(nodes)
    return Conversation(
        id=to_text(topic.get("id")),
        title=to_text(topic.get("name")),
        created_at=parse_time(topic.get("createdAt")) or min(times, default=None),
        updated_at=parse_time(topic.get("updatedAt")) or max(times, default=None),
        system_prompt=to_text(topic.get("prompt")) or prompt,
        is_pinned=topic.get("pinned") is True,
        nodes=nodes,
        leaf=last_id,
    )


def _build_message(
    item: Mapping[str, object], blocks: Mapping[object, object], source: Source
) -> ChatMessage:
    role = read_role(item.get("role"))
    model = to_text(item.get("modelId")) or to_text(to_dict(item.get("model")).get("id"))
    built = ChatMessage(
        role=role,
        text=to_text(item.get("content")),
        reasoning=to_text(item.get("reasoning_content")),
        created_at=parse_time(item.get("createdAt")),
        model=model if role == "assistant" else "",
        is_interrupted=item.get("status") == "paused",
    )
    for block_id in to_list(item.get("blocks")):
        block = to_dict(blocks.get(block_id)) if isinstance(block_id, str) else {}
        _add_block(built, block, source)
    for file in to_items(item.get("files")):
        built.files.append(_find(file, source))
    return built


def _add_block(built: ChatMessage, block: Mapping[str, object], source: Source) -> None:
    kind = block.get("type")
    content = to_text(block.get("content"))
    if kind == "thinking":
        built.reasoning = join_words(built.reasoning, content)
    elif kind == "code":
        fence = f"```{to_text(block.get('language'))}\n{content}\n```"
        built.text = join_words(built.text, fence)
    elif kind == "tool":
        result = block.get("content")
        built.calls.append(
            Call(
                id=to_text(block.get("toolId")),
                name=to_text(block.get("toolName")) or "tool",
                arguments=json.dumps(to_dict(block.get("arguments")), ensure_ascii=False),
                result=content or (json.dumps(result, ensure_ascii=False) if result else ""),
            )
        )
    elif kind in ("image", "file", "video"):
        if file := to_dict(block.get("file")):
            built.files.append(_find(file, source))
        elif url := to_text(block.get("url")):
            built.files += read_parts([{"image_url": {"url": url}}])[1]
    elif kind != "error":
        built.text = join_words(built.text, content)


def _find(file: Mapping[str, object], source: Source) -> ChatFile:
    stored_name = to_text(file.get("id")) + to_text(file.get("ext"))
    member = source.export.find_by_path(f"Files/{stored_name}")
    return find_file(member, to_text(file.get("origin_name")) or to_text(file.get("name")))


def _read_topic_file(value: Mapping[str, object]) -> Conversation:
    nodes = []
    for index, item in enumerate(to_items(value.get("messages"))):
        role = read_role(item.get("role"))
        parts = to_items(item.get("parts"))
        thoughts = [to_text(p.get("text")) for p in parts if p.get("type") == "reasoning"]
        words, files = read_parts([p for p in parts if p.get("type") != "reasoning"])
        message = ChatMessage(
            role=role,
            text=words,
            reasoning=join_words(*thoughts),
            files=files,
            created_at=parse_time(item.get("createdAt")),
            is_interrupted=item.get("status") == "paused",
        )
        nodes.append(
            Node(
                id=to_text(item.get("sourceId")) or str(index),
                parent=to_text(item.get("parentSourceId")) or None,
                message=message,
            )
        )
    topic = to_dict(value.get("topic"))
    return Conversation(
        id=to_text(topic.get("id")),
        title=to_text(topic.get("name")),
        created_at=parse_time(topic.get("createdAt")),
        updated_at=parse_time(topic.get("updatedAt")),
        nodes=nodes,
        leaf=to_text(value.get("activeSourceId")) or None,
    )

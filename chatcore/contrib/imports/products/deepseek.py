"""DeepSeek: `conversations.json`, trees without roles; the kind of a fragment says who speaks."""

import json
import re
from collections.abc import Iterator, Mapping

from chatcore.contrib.imports.conversation import Call, ChatFile, ChatMessage, Conversation, Node
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import join_words, to_dict, to_text
from chatcore.contrib.imports.products.base import OddChat, Reader, Source, build_link
from chatcore.transfer.times import parse_time

_CITATION = re.compile(r"\[citation:(\d+)\]")


class DeepSeekReader(Reader):
    """Chats with DeepSeek."""

    key = "deepseek"
    name = "DeepSeek"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return any("mapping" in item and "inserted_at" in item for item in sample.items)

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        mapping = value.get("mapping")
        if not isinstance(mapping, dict):
            raise OddChat("Its messages are not in the export, only its title.")
        nodes = [
            Node(
                id=str(node_id),
                parent=str(to_dict(node).get("parent") or "") or None,
                message=_build_message(to_dict(to_dict(node).get("message"))),
            )
            for node_id, node in mapping.items()
        ]
        yield Conversation(
            id=to_text(value.get("id")),
            title=to_text(value.get("title")),
            created_at=parse_time(value.get("inserted_at")),
            updated_at=parse_time(value.get("updated_at")),
            nodes=nodes,
        )


def _build_message(message: Mapping[str, object]) -> ChatMessage | None:
    if not message:
        return None
    fragments = to_items(message.get("fragments"))
    sources = {
        str(result.get("cite_index")): build_link(
            to_text(result.get("title")), to_text(result.get("url"))
        )
        for fragment in fragments
        for result in to_items(fragment.get("results"))
    }
    words = {
        kind: join_words(*(to_text(f.get("content")) for f in fragments if f.get("type") == kind))
        for kind in ("REQUEST", "RESPONSE", "THINK")
    }
    is_question = any(fragment.get("type") == "REQUEST" for fragment in fragments)
    if not fragments:  # an older form, or a failed answer
        words["RESPONSE"] = to_text(message.get("content"))
    built = ChatMessage(
        role="user" if is_question or message.get("role") == "USER" else "assistant",
        text=words["REQUEST"] if is_question else words["RESPONSE"],
        reasoning=words["THINK"] or to_text(message.get("reasoning_content")),
        created_at=parse_time(message.get("inserted_at")),
    )
    if built.role == "assistant":
        built.model = to_text(message.get("model"))
        built.text = _CITATION.sub(
            lambda match: f" ({sources[match.group(1)]})" if match.group(1) in sources else "",
            built.text,
        )
    for fragment in fragments:
        if fragment.get("type") == "SEARCH":
            lines = [
                join_words(
                    build_link(to_text(r.get("title")), to_text(r.get("url"))),
                    to_text(r.get("snippet")),
                )
                for r in to_items(fragment.get("results"))
            ]
            query = json.dumps({"query": to_text(fragment.get("content"))}, ensure_ascii=False)
            built.calls.append(Call(name="search", arguments=query, result=join_words(*lines)))
    for file in to_items(message.get("files")):
        name = to_text(file.get("file_name")) or "file"
        content = file.get("content")
        built.files.append(
            ChatFile.from_text(name, content) if isinstance(content, str) else ChatFile(name=name)
        )
    return built

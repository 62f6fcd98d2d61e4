"""Grok: `prod-grok-backend.json`, trees by `parent_response_id`; files beside it have no names."""

import re
from collections.abc import Iterator, Mapping

from chatcore.contrib.imports.conversation import (
    ChatFile,
    ChatMessage,
    Conversation,
    Node,
    list_times,
)
from chatcore.contrib.imports.export_files import Export, Member, Sample, to_items
from chatcore.contrib.imports.json_items import join_words, to_dict, to_list, to_text
from chatcore.contrib.imports.products.base import (
    Reader,
    Source,
    build_link,
    find_file,
    has_keys,
    parse_text,
    read_attributes,
)
from chatcore.transfer.times import parse_time

_CARD = re.compile(r"<grok:render\b([^<>]*+)>(?:(?!</?grok:render\b).)*+</grok:render>", re.DOTALL)
_ARTIFACT = re.compile(r"<xaiArtifact\b([^<>]*+)>(.*?)(?:</xaiArtifact>|\Z)", re.DOTALL)
_EXTENSIONS = {"text/markdown": "md", "text/html": "html", "text/x-python": "py"}


class GrokReader(Reader):
    """Chats with Grok."""

    key = "grok"
    name = "Grok"
    path = ("conversations",)

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return has_keys(sample, "conversation", "responses")

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        chat = to_dict(value.get("conversation"))
        nodes: list[Node] = []
        for index, item in enumerate(to_items(value.get("responses"))):
            response = to_dict(item.get("response")) or item
            message = _build_message(response, source.export)
            nodes.append(
                Node(
                    id=to_text(response.get("_id")) or str(index),
                    parent=to_text(response.get("parent_response_id"))
                    or (nodes[-1].id if nodes and "parent_response_id" not in response else None),
                    message=message,
                )
            )
        modified = parse_time(chat.get("modify_time"))
        times = [*list_times(nodes), *([modified] if modified else [])]
        yield Conversation(
            id=to_text(chat.get("id")),
            title=to_text(chat.get("title")),
            created_at=parse_time(chat.get("create_time")),
            updated_at=max(times, default=None),
            is_pinned=chat.get("starred") is True,
            nodes=nodes,
            leaf=to_text(chat.get("leaf_response_id")) or None,
        )


def _build_message(response: Mapping[str, object], export: Export) -> ChatMessage:
    is_question = to_text(response.get("sender")).lower() in ("human", "user")
    cards = {}
    for text in to_list(response.get("card_attachments_json")):
        card = to_dict(parse_text(text))
        if card.get("url"):
            cards[to_text(card.get("id"))] = f" ({build_link('', to_text(card['url']))})"

    def show_card(match: re.Match[str]) -> str:
        return cards.get(read_attributes(match.group(1)).get("card_id", ""), "")

    words = _CARD.sub(show_card, to_text(response.get("message")))
    built = ChatMessage(
        role="user" if is_question else "assistant",
        reasoning=to_text(response.get("thinking_trace")),
        created_at=parse_time(response.get("create_time")),
        model="" if is_question else to_text(response.get("model")),
    )

    def take(match: re.Match[str]) -> str:
        values = read_attributes(match.group(1))
        extension = _EXTENSIONS.get(values.get("contentType", ""), "txt")
        name = f"{values.get('title') or 'artifact'}.{extension}"
        built.files.append(ChatFile.from_text(name, match.group(2)))
        return f"[{name}]"

    built.text = _ARTIFACT.sub(take, words)
    for asset in to_list(response.get("file_attachments")):
        asset_id = to_text(asset) or to_text(to_dict(asset).get("id"))
        member = export.find_by_path(f"{asset_id}/content")
        built.files.append(find_file(member, asset_id or "file"))
    for url in to_list(response.get("generated_image_urls")):
        built.files.append(ChatFile(name=to_text(url).rsplit("/", 1)[-1] or "picture"))
    if response.get("error") and not built.text.strip():
        return ChatMessage(role="assistant")  # a failed answer without words
    built.text = join_words(built.text)
    return built

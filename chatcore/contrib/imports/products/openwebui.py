"""Open WebUI: a list of chats, each a tree in `history.messages`; older ones without a wrapper."""

import html
import json
import re
from collections.abc import Iterator, Mapping

from chatcore.contrib.imports.conversation import Call, ChatFile, ChatMessage, Conversation, Node
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import join_words, to_dict, to_list, to_text
from chatcore.contrib.imports.products.base import (
    OddChat,
    Reader,
    Source,
    build_link,
    build_linked_file,
    list_links,
    read_attributes,
    read_parts,
    read_role,
)
from chatcore.transfer.times import parse_time

_DETAILS = re.compile(r"<details\b([^<>]*+)>((?:(?!</?details\b).)*+)</details>\s*+", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(?:(?!</?summary>).)*+</summary>\s*+", re.DOTALL)


class OpenWebUiReader(Reader):
    """Chats of Open WebUI."""

    key = "openwebui"
    name = "Open WebUI"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return any(
            isinstance(to_dict(item.get("history") or to_dict(item.get("chat")).get("history"))
                       .get("messages"), dict)
            for item in sample.items
        )  # fmt: skip

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        chat = to_dict(value.get("chat")) or value
        history = to_dict(chat.get("history"))
        items = history.get("messages")
        if not isinstance(items, dict):
            items = {str(index): item for index, item in enumerate(to_list(chat.get("messages")))}
            if not items:
                raise OddChat("Its messages are not in the export, only its title.")
        nodes = [
            Node(
                id=str(node_id),
                parent=to_text(to_dict(item).get("parentId")) or None,
                message=_build_message(to_dict(item)),
            )
            for node_id, item in items.items()
        ]
        models = [model for model in to_list(chat.get("models")) if isinstance(model, str)]
        created_at = value.get("created_at") or chat.get("timestamp")
        yield Conversation(
            id=to_text(value.get("id")) or to_text(chat.get("id")),
            title=to_text(value.get("title")) or to_text(chat.get("title")),
            created_at=parse_time(created_at),
            updated_at=parse_time(value.get("updated_at") or created_at),
            system_prompt=to_text(chat.get("system"))
            or to_text(to_dict(chat.get("params")).get("system")),
            model=models[0] if models else "",
            is_pinned=value.get("pinned") is True,
            is_archived=value.get("archived") is True,
            nodes=nodes,
            leaf=to_text(history.get("currentId")) or None,
        )


def _build_message(item: Mapping[str, object]) -> ChatMessage | None:
    role = to_text(item.get("role"))
    if not role:
        return None
    text, files = read_parts(item.get("content"))
    built = ChatMessage(
        role=read_role(role),
        text=text,
        files=files,
        created_at=parse_time(item.get("timestamp")),
        model=to_text(item.get("model")) if role == "assistant" else "",
        is_interrupted=item.get("done") is False and bool(text),
    )
    if role == "assistant":
        _take_details(built)
        _take_output(built, to_items(item.get("output")))
        built.text = join_words(built.text.strip(), _list_sources(item))
        error = item.get("error")
        words = to_text(error) or to_text(to_dict(error).get("content"))
        if words and not built.text:
            return None
    for file in to_items(item.get("files")):
        built.files.append(_read_file(file))
    return built


def _read_file(file: Mapping[str, object]) -> ChatFile:
    inner = to_dict(file.get("file"))
    name = to_text(file.get("name")) or to_text(inner.get("filename"))
    content = to_dict(inner.get("data")).get("content")
    if isinstance(content, str) and content:
        # Only the text of a document is exported, whatever it was.
        return ChatFile.from_text(name or "document.txt", content)
    return build_linked_file(to_text(file.get("url")), name)


def _take_details(built: ChatMessage) -> None:
    """Move thoughts and calls of tools out of the words, where they stand as HTML."""

    def take(match: re.Match[str]) -> str:
        values = read_attributes(match.group(1))
        kind = values.get("type")
        if kind == "reasoning":
            words = html.unescape(_SUMMARY.sub("", match.group(2))).strip()
            thoughts = re.sub(r"^> ?", "", words, flags=re.MULTILINE)
            built.reasoning = join_words(built.reasoning, thoughts)
            return ""
        if kind == "tool_calls":
            built.calls.append(
                Call(
                    id=values.get("id", ""),
                    name=html.unescape(values.get("name", "")) or "tool",
                    arguments=_read_json_text(values.get("arguments", "")),
                    result=_read_json_text(values.get("result", "")) or None,
                )
            )
            return ""
        return match.group()

    built.text = _DETAILS.sub(take, built.text)


def _read_json_text(value: str) -> str:
    """Return a text that stands in an attribute, sometimes as JSON of a text."""
    text = html.unescape(value)
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return inner if isinstance(inner, str) else text


def _take_output(built: ChatMessage, output: list[dict[str, object]]) -> None:
    """Read the newer list of an answer's parts, where the words do not have them already."""
    has_reasoning, has_calls, has_words = built.reasoning, bool(built.calls), built.text.strip()
    for part in output:
        kind = part.get("type")
        texts = [to_text(piece.get("text")) for piece in to_items(part.get("content"))]
        if kind == "reasoning" and not has_reasoning:
            texts += [to_text(piece.get("text")) for piece in to_items(part.get("summary"))]
            built.reasoning = join_words(built.reasoning, *texts)
        elif kind == "message" and not has_words:
            built.text = join_words(built.text, *texts)
        elif kind == "function_call" and not has_calls:
            built.calls.append(
                Call(
                    id=to_text(part.get("call_id")) or to_text(part.get("id")),
                    name=to_text(part.get("name")) or "tool",
                    arguments=to_text(part.get("arguments")) or "{}",
                )
            )
        elif kind == "function_call_output" and not has_calls:
            result, files = read_parts(part.get("output"))
            for call in built.calls:
                if call.id == part.get("call_id"):
                    call.result = result
            built.files += files


def _list_sources(item: Mapping[str, object]) -> str:
    """Return links to the pages that an answer names as its sources."""
    links = []
    for source in [*to_items(item.get("sources")), *to_items(item.get("citations"))]:
        inner = to_dict(source.get("source"))
        url = to_text(inner.get("url")) or to_text(inner.get("name"))
        if url.startswith(("http://", "https://")):
            links.append(build_link(to_text(inner.get("name")), url))
    return list_links(dict.fromkeys(links))

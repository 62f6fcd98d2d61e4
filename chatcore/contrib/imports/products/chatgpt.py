"""ChatGPT: `conversations.json`, or since 2026 `conversations-000.json` and so on, and group chats.

A chat is a tree in `mapping`. Words, voice (as it was written down), thoughts, calls of tools,
canvas and pictures are kept. Hidden messages and custom instructions are not.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from weakref import WeakKeyDictionary

from chatcore.contrib.imports.conversation import (
    Call,
    ChatFile,
    ChatMessage,
    Conversation,
    Node,
    chain,
)
from chatcore.contrib.imports.export_files import (
    UNREADABLE,
    Export,
    Member,
    Sample,
    parse_json,
    to_items,
)
from chatcore.contrib.imports.json_items import join_words, to_dict, to_list, to_text
from chatcore.contrib.imports.products.base import (
    ANOTHER_FORM,
    OddChat,
    Reader,
    Source,
    build_link,
    build_links,
    find_file,
    read_attributes,
)
from chatcore.transfer.times import parse_time

MAX_LIST_BYTES = 50_000_000
_MARK = re.compile("\ue200([^\ue200\ue201]*+)\ue201")
_OLD_MARK = re.compile(r"【(\d++)[^【】]*+】")
_STEM = re.compile(r"file[-_][A-Za-z0-9]+")
_WRITING = re.compile(r"^:::writing\{([^}\n]*+)\}\n((?:(?!:::).*+\n)*+):::[ \t]*+$", re.MULTILINE)
_HIDDEN_KINDS = ("reasoning_recap", "user_editable_context", "model_editable_context")
_SPOKEN = ("audio_asset_pointer", "real_time_user_audio_video_asset_pointer")

Links = dict[str, str]


class ChatGptReader(Reader):
    """Chats with one person."""

    key = "chatgpt"
    name = "ChatGPT"
    path = ("conversations",)
    may_be_one_chat = True

    def __init__(self) -> None:
        self._exports: WeakKeyDictionary[Export, _SideFiles] = WeakKeyDictionary()

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return sample.kind in ("list", "object") and any(
            "mapping" in item and "inserted_at" not in item for item in sample.items
        )

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        mapping = value.get("mapping")
        if isinstance(mapping, list):
            mapping = {to_text(to_dict(node).get("id")): node for node in mapping}
        if not isinstance(mapping, dict):
            raise OddChat("Its messages are not in the export, only its title.")
        if source.export not in self._exports:
            self._exports[source.export] = _SideFiles(source.export)
        side_files = self._exports[source.export]
        chat_id = to_text(value.get("conversation_id")) or to_text(value.get("id"))
        builder = _ChatBuilder(mapping, side_files)
        nodes = builder.build_nodes()
        if nodes and not builder.has_messages:
            raise OddChat(ANOTHER_FORM)
        leaf = to_text(value.get("current_node")) or None
        _add_reports(nodes, leaf, list(side_files.find_reports(chat_id)))
        yield Conversation(
            id=chat_id,
            title=to_text(value.get("title")),
            created_at=parse_time(value.get("create_time")),
            updated_at=parse_time(value.get("update_time")),
            model=to_text(value.get("default_model_slug")),
            is_archived=value.get("is_archived") is True,
            is_pinned=bool(value.get("pinned_time")) or value.get("is_starred") is True,
            nodes=nodes,
            leaf=leaf,
            notes=builder.notes,
        )


class GroupChatReader(Reader):
    """Chats of several people with ChatGPT, which have a file of their own."""

    key = "chatgpt"
    name = "ChatGPT"
    path = ("chats",)

    def recognizes(self, sample: Sample, member: Member) -> bool:
        chats = to_items(sample.items[0].get("chats")) if sample.items else []
        return member.base_name == "group_chats.json" or any(
            "members" in chat and "messages" in chat for chat in chats
        )

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        messages = [
            ChatMessage(
                role="user" if item.get("role") == "user" else "assistant",
                text=to_text(item.get("text")),
                created_at=parse_time(item.get("created_at")),
                files=[
                    ChatFile(name=to_text(to_dict(file).get("name")) or "file")
                    for file in to_list(item.get("attachments"))
                ],
            )
            for item in to_items(value.get("messages"))
        ]
        yield Conversation(
            id=to_text(value.get("id")),
            title=to_text(value.get("name")),
            created_at=parse_time(value.get("created_at")),
            updated_at=parse_time(value.get("updated_at")),
            nodes=chain(messages),
        )


class _SideFiles:
    """What other files of the export say of a chat: names of files, and documents."""

    def __init__(self, export: Export) -> None:
        self.export = export
        self.names = {
            name.rsplit(".", 1)[0]: to_text(value).rsplit("/", 1)[-1]
            for name, value in to_dict(_load(export, "conversation_asset_file_names.json")).items()
        }
        self.library = to_items(_load(export, "library_files.json"))

    def find(self, pointer: str, name: str = "") -> ChatFile:
        """Return the file that a pointer such as `sediment://file_ID` names."""
        stem = _find_stem(pointer)
        member = self.export.by_stem.get(stem)
        known_name = self.names.get(stem, "")
        return find_file(member, name or known_name or (member.base_name if member else stem))

    def find_reports(self, chat_id: str) -> Iterator[ChatFile]:
        """Yield the documents of a chat that none of its messages has."""
        for entry in self.library:
            is_here = entry.get("origination_thread_id") == chat_id
            is_document = entry.get("library_artifact_type") in ("report", "writing_block")
            if chat_id and is_here and is_document:
                yield self.find(to_text(entry.get("file_id")), to_text(entry.get("file_name")))


class _ChatBuilder:
    """Turns the nodes of a chat into messages."""

    def __init__(self, mapping: Mapping[str, object], side_files: _SideFiles) -> None:
        self.mapping = {str(node_id): to_dict(node) for node_id, node in mapping.items()}
        self.side_files = side_files
        self.notes: list[str] = []
        self.document = ("", "")  # of the canvas: its name and words
        self.references: dict[str, Mapping[str, object]] = {}
        self.sources: Links = {}
        for node in self.mapping.values():
            self._collect_sources(to_dict(to_dict(node.get("message")).get("metadata")))

    @property
    def has_messages(self) -> bool:
        """False where no node is what a node should be."""
        return any(
            "message" in node
            and (node["message"] is None or isinstance(node["message"], dict))
            and isinstance(to_dict(node["message"]).get("author", {}), dict | None)
            for node in self.mapping.values()
        )

    def build_nodes(self) -> list[Node]:
        """Return all nodes; those that are not told have no message."""
        nodes = []
        for node_id, node in self.mapping.items():
            message = node.get("message")
            built = self._build(message, node) if isinstance(message, dict) else None
            nodes.append(
                Node(id=node_id, parent=to_text(node.get("parent")) or None, message=built)
            )
        return nodes

    def _build(
        self, message: Mapping[str, object], node: Mapping[str, object]
    ) -> ChatMessage | None:
        metadata = to_dict(message.get("metadata"))
        content = to_dict(message.get("content"))
        author = to_dict(message.get("author"))
        kind = content.get("content_type")
        if metadata.get("is_visually_hidden_from_conversation") or kind in _HIDDEN_KINDS:
            return None
        role = to_text(author.get("role")) or self._guess_role(node)
        if role == "system":
            return None
        created_at = parse_time(message.get("create_time"))
        model = to_text(metadata.get("model_slug"))
        if kind == "thoughts":
            thoughts = [to_text(item.get("content")) for item in to_items(content.get("thoughts"))]
            return ChatMessage(
                role="assistant", reasoning=join_words(*thoughts), created_at=created_at
            )
        text, files = self._read_content(content, metadata)
        recipient = to_text(message.get("recipient")) or "all"
        if role == "tool":
            return self._build_result(to_text(author.get("name")), text, files, created_at)
        if role == "assistant" and recipient not in ("all", "user"):
            return self._build_call(recipient, text, created_at)
        if kind == "code" and text:
            language = to_text(content.get("language"))
            text = f"```{'' if language == 'unknown' else language}\n{text}\n```"
        return ChatMessage(
            role="assistant" if role == "assistant" else "user",
            text=self._open_writing(self._link_sources(text, metadata)),
            created_at=created_at,
            model=model if role == "assistant" else "",
            files=files,
            is_interrupted=message.get("status") == "in_progress",
        )

    def _guess_role(self, node: Mapping[str, object]) -> str:
        """Return who wrote a message that does not say so: the other one of those before it."""
        self.notes.append("One message does not say who wrote it; it was guessed.")
        seen: set[str] = set()
        parent = to_text(node.get("parent"))
        while parent in self.mapping and parent not in seen:
            seen.add(parent)
            message = to_dict(self.mapping[parent].get("message"))
            role = to_dict(message.get("author")).get("role")
            if role in ("user", "assistant"):
                return "assistant" if role == "user" else "user"
            parent = to_text(self.mapping[parent].get("parent"))
        return "user"

    def _read_content(
        self, content: Mapping[str, object], metadata: Mapping[str, object]
    ) -> tuple[str, list[ChatFile]]:
        names = {
            to_text(item.get("id")): to_text(item.get("name"))
            for item in to_items(metadata.get("attachments"))
        }
        texts: list[str] = []
        files: list[ChatFile] = []
        has_speech = has_recording = False
        for part in to_list(content.get("parts")):
            if isinstance(part, str):
                texts.append(part)
                continue
            part = to_dict(part)
            kind = to_text(part.get("content_type"))
            pointer = to_text(part.get("asset_pointer"))
            if kind == "audio_transcription" or isinstance(part.get("text"), str):
                texts.append(to_text(part.get("text")))
                has_speech = True
            elif kind in _SPOKEN:
                has_recording = True
            elif pointer:
                files.append(self._find_picture(pointer, part, names))
        if has_recording and not has_speech:
            self.notes.append("A recording is left out; what was said in it was not written down.")
        files += [
            self.side_files.find(file_id, name)
            for file_id, name in names.items()
            if file_id or name
        ]
        files += [
            self.side_files.find(url)
            for item in to_items(to_dict(metadata.get("aggregate_result")).get("messages"))
            if (url := to_text(item.get("image_url")))
        ]
        text = join_words(*texts)
        if content.get("content_type") == "tether_quote" and content.get("url"):
            link = build_link(to_text(content.get("title")), to_text(content.get("url")))
            return join_words(link, to_text(content.get("text"))), files
        for name in ("text", "result", "content"):
            text = text or to_text(content.get(name))
        return text, files

    def _find_picture(
        self, pointer: str, part: Mapping[str, object], names: dict[str, str]
    ) -> ChatFile:
        name = names.pop(_find_stem(pointer), "")
        prompt = to_text(to_dict(to_dict(part.get("metadata")).get("dalle")).get("prompt"))
        return self.side_files.find(pointer, name or prompt[:80])

    def _build_call(
        self, recipient: str, text: str, created_at: datetime | None
    ) -> ChatMessage | None:
        """Return a call of a tool, to be told with the answer after it."""
        if recipient.startswith("canmore."):
            return self._build_document(recipient, text, created_at)
        arguments = text
        if not isinstance(_parse_object(text), dict):
            arguments = json.dumps({"input": text}, ensure_ascii=False)
        call = Call(name=recipient, arguments=arguments)
        return ChatMessage(role="assistant", calls=[call], created_at=created_at)

    def _build_document(
        self, recipient: str, text: str, created_at: datetime | None
    ) -> ChatMessage | None:
        """Return a document of the canvas as a file, or its new form after a change."""
        value = _parse_object(text)
        if value is None:
            self.notes.append("A change of a canvas document cannot be read and is left out.")
            return None
        if recipient.endswith("create_textdoc"):
            kind = to_text(value.get("type"))
            name = to_text(value.get("name")) or "document"
            extension = kind.split("/")[-1] if kind.startswith("code/") else "md"
            self.document = (f"{name}.{extension}", to_text(value.get("content")))
        elif recipient.endswith("update_textdoc"):
            name, words = self.document
            for update in to_items(value.get("updates")):
                words = _replace_words(words, update)
            self.document = (name or "document.md", words)
        else:
            return None
        file = ChatFile.from_text(*self.document)
        file.is_version = True
        return ChatMessage(role="assistant", files=[file], created_at=created_at)

    def _build_result(
        self, name: str, text: str, files: list[ChatFile], created_at: datetime | None
    ) -> ChatMessage | None:
        """Return what a tool answered. It is told as the result of the call before it."""
        if name.startswith("canmore") or (name == "bio" and not files):
            return None
        calls = [Call(name=name or "tool", arguments="", result=text)] if text else []
        return ChatMessage(role="assistant", calls=calls, files=files, created_at=created_at)

    def _collect_sources(self, metadata: Mapping[str, object]) -> None:
        for reference in to_items(metadata.get("content_references")):
            if matched_text := to_text(reference.get("matched_text")):
                self.references[matched_text] = reference
        for group in to_items(metadata.get("search_result_groups")):
            for entry in to_items(group.get("entries")):
                ref = to_dict(entry.get("ref_id"))
                name = f"turn{ref.get('turn_index')}{ref.get('ref_type')}{ref.get('ref_index')}"
                link = build_link(to_text(entry.get("title")), to_text(entry.get("url")))
                if entry.get("url"):
                    self.sources[name] = link

    def _link_sources(self, text: str, metadata: Mapping[str, object]) -> str:
        """Return the words with links where marks of sources stood."""
        if "【" in text:
            text = _link_old_marks(text, to_items(metadata.get("citations")))
        if "\ue200" in text:
            text = _MARK.sub(self._replace_mark, text)
        return re.sub("[\ue200-\ue206]", "", text)

    def _replace_mark(self, match: re.Match[str]) -> str:
        reference = self.references.get(match.group())
        if reference is not None:
            if alt := to_text(reference.get("alt")):
                return alt
            links = _list_links(reference)
            if links:
                return f" ({', '.join(links)})"
        kind, *rest = match.group(1).split("\ue202")
        links = [self.sources[name] for name in rest if name in self.sources]
        if links:
            return f" ({', '.join(dict.fromkeys(links))})"
        if kind == "entity" and rest:
            words = _parse_value(rest[0])
            return words[1] if isinstance(words, list) and len(words) > 1 else ""
        return ""

    def _open_writing(self, text: str) -> str:
        """Return the words of writing blocks without their marks."""

        def write(match: re.Match[str]) -> str:
            subject = read_attributes(match.group(1)).get("subject", "")
            return join_words(
                f"**{subject}**" if subject else "", match.group(2).removesuffix("\n")
            )

        return _WRITING.sub(write, text)


def _add_reports(nodes: list[Node], leaf: str | None, files: list[ChatFile]) -> None:
    """Hang documents that only the library names on the last message that was shown."""
    if not files:
        return
    told = [node for node in nodes if node.message]
    end = next((node for node in told if node.id == leaf), told[-1] if told else None)
    if end and end.message:
        end.message.files += files
    else:
        message = ChatMessage(role="assistant", files=files)
        nodes.append(Node(id="documents", parent=None, message=message))


def _find_stem(pointer: str) -> str:
    """Return the id of a file, as its name in the export begins."""
    name = pointer.rsplit("//", 1)[-1]
    match = _STEM.search(name)
    return match.group() if match else name


def _link_old_marks(text: str, citations: list[dict[str, object]]) -> str:
    links: dict[str, str] = {}
    spans = []
    for citation in citations:
        source = to_dict(citation.get("metadata"))
        url = to_text(source.get("url"))
        if not url:
            continue
        link = f" ({build_link(to_text(source.get('title')), url)})"
        number = to_dict(source.get("extra")).get("cited_message_idx")
        links.setdefault(str(number), link)
        start, end = citation.get("start_ix"), citation.get("end_ix")
        if isinstance(start, int) and isinstance(end, int) and text[start : start + 1] == "【":
            spans.append((start, end, link))
    for start, end, link in sorted(spans, reverse=True):
        text = text[:start] + link + text[end:]
    return _OLD_MARK.sub(lambda match: links.get(match.group(1), ""), text)


def _list_links(reference: Mapping[str, object]) -> list[str]:
    items = to_items(reference.get("items")) or to_items(reference.get("sources"))
    return list(dict.fromkeys(build_links(items) or build_links([reference])))


def _replace_words(words: str, update: Mapping[str, object]) -> str:
    """Return a document after one change, which is a pattern with what takes its place."""
    pattern, replacement = to_text(update.get("pattern")), to_text(update.get("replacement"))
    if pattern in (".*", "^.*$", "[\\s\\S]*"):  # the whole document
        return replacement
    if pattern in words:
        return words.replace(pattern, replacement, -1 if update.get("multiple") else 1)
    # Not run as an expression: one of a stranger's can take for ever.
    plain_pattern = re.sub(r"\\(.)", r"\1", pattern)
    if plain_pattern and plain_pattern in words:
        return words.replace(plain_pattern, replacement, 1)
    return words if not replacement or replacement in words else join_words(words, replacement)


def _parse_object(text: str) -> dict[str, object] | None:
    for end in ("", "}", "]}", '"}]}', '"}'):  # some lack the closing brackets
        value = _parse_value(text + end)
        if isinstance(value, dict):
            return value
    return None


def _parse_value(text: str) -> object:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _load(export: Export, name: str) -> object:
    member = export.by_base_name.get(name)
    try:
        return parse_json(member.read(MAX_LIST_BYTES)) if member else None
    except UNREADABLE:
        return None

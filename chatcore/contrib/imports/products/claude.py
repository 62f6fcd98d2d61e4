"""Claude: `conversations.json`, chats as trees by `parent_message_uuid`, in older files as lists.

Words, thoughts, pasted texts, artifacts, calls of tools and sources are kept. The shown end is only
in files of browser tools; else it is the newest. Projects come with their documents, and what it
remembers as documents of projects.
"""

import json
import re
from collections.abc import Iterator, Mapping

from chatcore.contrib.imports.conversation import (
    Call,
    ChatFile,
    ChatMessage,
    Conversation,
    ForeignProject,
    Node,
)
from chatcore.contrib.imports.export_files import (
    UNREADABLE,
    Export,
    Member,
    Sample,
    parse_json,
    to_items,
)
from chatcore.contrib.imports.json_items import (
    MAX_ITEM_BYTES,
    join_words,
    to_dict,
    to_list,
    to_text,
)
from chatcore.contrib.imports.products.base import (
    ANOTHER_FORM,
    OddChat,
    Reader,
    Source,
    build_link,
    has_keys,
    read_attributes,
    require_object,
)
from chatcore.transfer.times import parse_time

_ROLES = {"human": "user", "assistant": "assistant", "user": "user"}
_ARTIFACT = re.compile(r"<antArtifact\b([^<>]*+)>(.*?)(?:</antArtifact>|\Z)", re.DOTALL)
_THINKING = re.compile(r"<antThinking>((?:(?!</?antThinking>).)*+)</antThinking>\s*+", re.DOTALL)
_PLACEHOLDER = re.compile(
    r"```\s*\n?This block is not supported on your current device yet\.?\s*\n?```\s*"
)
_EXTENSIONS = {
    "text/markdown": "md",
    "text/html": "html",
    "image/svg+xml": "svg",
    "application/vnd.ant.react": "jsx",
    "application/vnd.ant.mermaid": "mmd",
}
_LANGUAGES = {"python": "py", "javascript": "js", "typescript": "ts", "bash": "sh"}

Documents = dict[str, tuple[str, str]]  # by their ids: name and words

MEMORY_NAME = "Memory of Claude"
MEMORY_FILE = "memory.md"


class ClaudeReader(Reader):
    """Chats with Claude."""

    key = "claude"
    name = "Claude"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return sample.kind in ("list", "object") and has_keys(sample, "chat_messages")

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        items = value.get("chat_messages")
        if not isinstance(items, list):
            raise OddChat("Its messages are not in the export, only its title.")
        messages = [to_dict(item) for item in items]
        is_tree = any(message.get("parent_message_uuid") for message in messages)
        documents: Documents = {}
        nodes: list[Node] = []
        for index, message in enumerate(messages):
            previous = nodes[-1].id if nodes else None
            parent = to_text(message.get("parent_message_uuid")) or None
            nodes.append(
                Node(
                    id=to_text(message.get("uuid")) or str(index),
                    parent=_leave_out_root(parent) if is_tree else previous,
                    message=_build_message(message, documents),
                )
            )
        if nodes and all(node.message is None or node.message.is_empty for node in nodes):
            blocks = [to_list(message.get("content")) for message in messages]
            if not any(
                message.get("sender") and block
                for message, block in zip(messages, blocks, strict=True)
            ) or any(not isinstance(part, dict) for block in blocks for part in block):
                raise OddChat(ANOTHER_FORM)
        yield Conversation(
            id=to_text(value.get("uuid")),
            title=to_text(value.get("name")) or _shorten(to_text(value.get("summary"))),
            created_at=parse_time(value.get("created_at")),
            updated_at=parse_time(value.get("updated_at")),
            model=to_text(value.get("model")),
            is_pinned=value.get("is_starred") is True,
            nodes=nodes,
            leaf=to_text(value.get("current_leaf_message_uuid")) or None,
        )


def _leave_out_root(parent: str | None) -> str | None:
    return None if parent and not parent.strip("0-48") else parent


def _shorten(summary: str) -> str:
    return re.sub(r"[*#_`]", "", summary.strip().split("\n")[0])[:80]


def _build_message(item: Mapping[str, object], documents: Documents) -> ChatMessage:
    built = ChatMessage(
        role=_ROLES.get(to_text(item.get("sender")), "assistant"),
        created_at=parse_time(item.get("created_at")),
    )
    for block in to_items(item.get("content")):
        _add_block(built, block, documents)
    if not built.text.strip() and not built.lead.strip():
        built.text = to_text(item.get("text"))
    built.text = _PLACEHOLDER.sub("", built.text)
    built.lead = _PLACEHOLDER.sub("", built.lead)
    if built.role == "assistant":
        _take_old_artifacts(built, documents)
    for file in to_items(item.get("attachments")):
        name = to_text(file.get("file_name")) or "pasted.txt"
        content = file.get("extracted_content")
        built.files.append(
            ChatFile.from_text(name, content) if isinstance(content, str) else ChatFile(name=name)
        )
    for file in [*to_items(item.get("files")), *to_items(item.get("files_v2"))]:
        name = to_text(file.get("file_name")) or "file"
        if all(name != other.name for other in built.files):
            built.files.append(ChatFile(name=name))
    return built


def _add_block(built: ChatMessage, block: Mapping[str, object], documents: Documents) -> None:
    kind = block.get("type")
    if kind == "text":
        text = _link_sources(to_text(block.get("text")), to_list(block.get("citations")))
        built.text = join_words(built.text, text)
    elif kind == "thinking":
        built.reasoning = join_words(built.reasoning, to_text(block.get("thinking")))
    elif kind == "tool_use":
        file = _build_document(block, documents)
        if file:
            built.files = [other for other in built.files if other.name != file.name] + [file]
            return
        if not built.calls:
            built.lead, built.text = built.text, ""
        arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
        name = to_text(block.get("name")) or "tool"
        built.calls.append(Call(id=to_text(block.get("id")), name=name, arguments=arguments))
    elif kind == "tool_result":
        _add_result(built, block)


def _add_result(built: ChatMessage, block: Mapping[str, object]) -> None:
    """Give a result to its call: by the id, or where it is null to the first that waits."""
    call_id = block.get("tool_use_id")
    waiting = [call for call in built.calls if call.result is None]
    call = next((call for call in waiting if call_id and call.id == call_id), None)
    if call is None and not call_id:
        call = next((call for call in waiting if call.name == block.get("name")), None)
    if call is None:
        return
    content = block.get("content")
    texts = [content] if isinstance(content, str) else []
    for part in to_items(content):
        if part.get("url"):
            texts.append(build_link(to_text(part.get("title")), to_text(part.get("url"))))
        texts.append(to_text(part.get("text")))
    call.result = join_words(*texts)
    call.is_error = block.get("is_error") is True


def _build_document(block: Mapping[str, object], documents: Documents) -> ChatFile | None:
    """Return the artifact that a call makes or changes, as it is after it."""
    data = to_dict(block.get("input"))
    name = block.get("name")
    if name == "artifacts":
        key = to_text(data.get("id")) or "artifact"
        title = to_text(data.get("title"))
        file_name = _name_artifact(title, to_text(data.get("type")), to_text(data.get("language")))
        words = data.get("content")
        command = data.get("command")
    elif name == "create_file":
        key = to_text(data.get("path"))
        file_name = key.rsplit("/", 1)[-1] or "file.txt"
        words, command = data.get("file_text"), "create"
    elif name == "str_replace":
        key = to_text(data.get("path"))
        file_name, words, command = "", None, "update"
    else:
        return None
    old_name, old_words = documents.get(key, ("", ""))
    if command == "update":
        old, new = to_text(data.get("old_str")), to_text(data.get("new_str"))
        if key not in documents:
            return None
        words = old_words.replace(old, new, 1) if old else old_words
        file_name = old_name
    if not isinstance(words, str):
        return None
    if old_name and not to_text(data.get("title")):
        file_name = old_name
    documents[key] = (file_name, words)
    return ChatFile.from_text(file_name, words)


def _name_artifact(title: str, kind: str, language: str) -> str:
    extension = _EXTENSIONS.get(kind) or _LANGUAGES.get(language) or language or "txt"
    title = title or "artifact"
    return title if title.endswith(f".{extension}") else f"{title}.{extension}"


def _take_old_artifacts(built: ChatMessage, documents: Documents) -> None:
    """Make files of the artifacts that stood between tags in the words, as in 2024."""

    def take(match: re.Match[str]) -> str:
        values = read_attributes(match.group(1))
        name = _name_artifact(
            values.get("title", ""), values.get("type", ""), values.get("language", "")
        )
        words = match.group(2).strip("\n")
        documents[values.get("identifier", name)] = (name, words)
        built.files.append(ChatFile.from_text(name, words))
        return f"[{name}]"

    thoughts = _THINKING.findall(built.text)
    built.reasoning = join_words(built.reasoning, *thoughts)
    built.text = _ARTIFACT.sub(take, _THINKING.sub("", built.text))


def _link_sources(text: str, citations: list[object]) -> str:
    links = []
    for citation in to_items(citations):
        details = to_dict(citation.get("details"))
        if url := to_text(details.get("url")) or to_text(citation.get("url")):
            title = to_text(details.get("title")) or to_text(citation.get("title"))
            links.append(build_link(title, url))
    links = [link for link in dict.fromkeys(links) if link not in text]
    return f"{text} ({', '.join(links)})" if links and text else text


class ClaudeProjectReader(Reader):
    """Projects: `projects.json`, or a file for each."""

    key = "claude"
    name = "Claude"
    has_projects = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return sample.kind in ("list", "object") and has_keys(sample, "prompt_template", "docs")

    def read_projects(self, value: object, source: Source) -> Iterator[ForeignProject]:
        yield _build_project(require_object(value))


class ClaudeMemoryReader(Reader):
    """What Claude remembers of a person, and of each project."""

    key = "claude"
    name = "Claude"
    has_projects = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return sample.kind in ("list", "object") and has_keys(sample, "conversations_memory")

    def read_projects(self, value: object, source: Source) -> Iterator[ForeignProject]:
        """Yield a project for what is remembered of all chats, and those that have a memory."""
        memories = require_object(value)
        if words := to_text(memories.get("conversations_memory")):
            yield ForeignProject(name=MEMORY_NAME, files=[ChatFile.from_text(MEMORY_FILE, words)])
        projects = _find_projects(source.export)
        for key, memory in to_dict(memories.get("project_memories")).items():
            if key in projects and (words := to_text(memory)):
                project = _build_project(projects[key])
                project.files = [ChatFile.from_text(MEMORY_FILE, words)]
                yield project


def _build_project(value: dict[str, object]) -> ForeignProject:
    return ForeignProject(
        name=to_text(value.get("name")),
        instructions=join_words(
            to_text(value.get("description")), to_text(value.get("prompt_template"))
        ),
        files=[
            ChatFile.from_text(
                to_text(file.get("filename")) or "document.txt", to_text(file.get("content"))
            )
            for file in to_items(value.get("docs"))
        ],
        created_at=parse_time(value.get("created_at")),
    )


def _find_projects(export: Export) -> dict[str, dict[str, object]]:
    """Return the projects of an export by their ids."""
    found = {}
    for member in export.members:
        if member.base_name != "projects.json" and "projects/" not in member.name:
            continue
        try:
            value = parse_json(member.read(MAX_ITEM_BYTES))
        except UNREADABLE:
            continue
        for item in to_list(value) or [value]:
            project = to_dict(item)
            if "prompt_template" in project:
                found[to_text(project.get("uuid"))] = project
    return found

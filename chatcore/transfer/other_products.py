"""Read the chats that people export from ChatGPT and Claude.

Both give a ZIP file with `conversations.json`, a list of chats. A chat of ChatGPT is a tree of
messages, of which the branch that ends at `current_node` is shown; one of Claude is a list. Words
of people and models are taken; pictures, hidden messages and the work of tools are left out.
"""

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import IO, Any

from chatcore.transfer.exporter import FORMAT
from chatcore.transfer.reader import InvalidImport

CONVERSATIONS_FILE = "conversations.json"
MAX_UNPACKED_BYTES = 100_000_000  # parsed, they take about ten times as much memory
# What zipfile raises for a file that somebody else made: broken or cut off, damaged inside, with a
# compression that Python has not (NotImplementedError, which is a RuntimeError), with a password.
# And json: for no JSON, or for too deep a one, whose RecursionError is a RuntimeError too.
UNREADABLE = (
    zipfile.BadZipFile,
    EOFError,
    OSError,
    zlib.error,
    RuntimeError,
    ValueError,
)
TITLE_CHARS = 200

_CLAUDE_ROLES = {"human": "user", "assistant": "assistant"}
_NO_CHATS = "This is no export of ChatGPT or Claude: it is a list of chats, and this is none."


def is_list_of_chats(data: Any) -> bool:
    """Return True if parsed JSON looks like `conversations.json` of one of the products."""
    return (
        isinstance(data, list)
        and bool(data)
        and all(isinstance(chat, Mapping) for chat in data)
        and ("mapping" in data[0] or "chat_messages" in data[0])
    )


def read_archive(file: IO[bytes], parse: Callable[[bytes], Any]) -> Any:
    """Return the `conversations.json` of a ZIP file as `parse` reads it. Raises InvalidImport."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if name.endswith(CONVERSATIONS_FILE)]
            if not names:
                raise InvalidImport("file", f"The archive has no {CONVERSATIONS_FILE}.")
            if archive.getinfo(names[0]).file_size > MAX_UNPACKED_BYTES:
                raise InvalidImport("file", f"{CONVERSATIONS_FILE} is too large.")
            with archive.open(names[0]) as entry:
                # The size that the archive states may be a lie.
                content = entry.read(MAX_UNPACKED_BYTES + 1)
        if len(content) > MAX_UNPACKED_BYTES:
            raise InvalidImport("file", f"{CONVERSATIONS_FILE} is too large.")
        return parse(content)
    except UNREADABLE as error:
        raise InvalidImport("file", f"The archive cannot be read: {error}.") from None


def convert_chats(data: Any) -> Iterator[dict[str, Any]]:
    """Yield each chat as `importer.import_session` takes it. Chats without words are left out.

    Raises InvalidImport where the list or a chat has another form.
    """
    if not is_list_of_chats(data):
        raise InvalidImport("file", _NO_CHATS)
    for index, chat in enumerate(data):
        try:
            if "mapping" in chat:
                messages = list(_read_chatgpt_messages(chat))
                title = chat.get("title")
            else:
                messages = list(_read_claude_messages(chat))
                title = chat.get("name")
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            raise InvalidImport(f"[{index}]", "The chat has another form than expected.") from None
        if messages:
            settings = {"title": str(title or "")[:TITLE_CHARS]}
            yield {"format": FORMAT, "session": settings, "messages": messages}


def _read_chatgpt_messages(chat: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    nodes = chat["mapping"]
    path: list[Mapping[str, Any]] = []
    node_id = chat.get("current_node") or _find_last_leaf(nodes)
    while node_id in nodes and len(path) <= len(nodes):  # a loop of parents ends, too
        path.append(nodes[node_id])
        node_id = nodes[node_id].get("parent")
    for node in reversed(path):
        message = node.get("message")
        if not message or (message.get("metadata") or {}).get(
            "is_visually_hidden_from_conversation"
        ):
            continue
        role = message["author"]["role"]
        text = _join_parts((message.get("content") or {}).get("parts"))
        if role in ("user", "assistant") and text:
            yield _build_message(role, text, message.get("create_time"))


def _find_last_leaf(nodes: Mapping[str, Any]) -> str | None:
    leaves = [node_id for node_id, node in nodes.items() if not node.get("children")]
    return leaves[-1] if leaves else None


def _read_claude_messages(chat: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for message in chat["chat_messages"]:
        role = _CLAUDE_ROLES.get(message["sender"])
        blocks = message.get("content") or []
        texts = [block.get("text") for block in blocks if block.get("type") == "text"]
        text = _join_parts(texts) or _join_parts([message.get("text")])
        files = [
            f"{file.get('file_name') or 'File'}:\n{file['extracted_content']}"
            for file in message.get("attachments") or []
            if file.get("extracted_content")
        ]
        whole_text = "\n\n".join([*files, text] if text else files)
        if role and whole_text:
            yield _build_message(role, whole_text, message.get("created_at"))


def _join_parts(parts: Any) -> str:
    """Return the texts among the parts; pictures and other objects are left out."""
    texts = [part for part in parts or [] if isinstance(part, str) and part.strip()]
    return "\n\n".join(texts)


def _build_message(role: str, text: str, time: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": text}
    if isinstance(time, int | float) and not isinstance(time, bool):
        message["created_at"] = datetime.fromtimestamp(time, UTC).isoformat()
    elif isinstance(time, str):
        message["created_at"] = time
    return message

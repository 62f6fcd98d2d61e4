"""A chat of any product, in the one form that every reader of `products` yields."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(kw_only=True)
class ChatFile:
    """A file of a message. `load` returns its bytes, or None where the export has them not."""

    name: str
    is_version: bool = False  # of a document, which takes the place of an earlier one
    load: Callable[[], bytes | None] = lambda: None

    @classmethod
    def from_text(cls, name: str, text: str) -> "ChatFile":
        """Return a file that is a text."""
        return cls(name=name, load=lambda: text.encode(errors="replace"))


@dataclass(kw_only=True)
class Call:
    """A call of a tool with its result, None if the export has it not."""

    name: str
    arguments: str = "{}"
    id: str = ""
    result: str | None = None
    is_error: bool = False


@dataclass(kw_only=True)
class ChatMessage:
    """A message: words before the calls of tools (`lead`), the calls, and the words after them.

    An answer without words, of thoughts, calls or files alone, is told with the answer after it.
    """

    role: str
    text: str = ""
    lead: str = ""
    created_at: datetime | None = None
    model: str = ""
    reasoning: str = ""
    files: list[ChatFile] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    is_interrupted: bool = False

    @property
    def is_aside(self) -> bool:
        """True for what an assistant did before it said something."""
        return self.role == "assistant" and not self.text.strip() and not self.lead.strip()

    @property
    def is_empty(self) -> bool:
        """True for a message that has nothing at all."""
        words = (self.text + self.lead + self.reasoning).strip()
        return not words and not self.files and not self.calls


@dataclass(kw_only=True)
class Node:
    """A place in the tree of a chat. One without a message only ties others together."""

    id: str
    parent: str | None
    message: ChatMessage | None = None


@dataclass(kw_only=True)
class Conversation:
    """A chat: a tree of messages, of which the branch that ends at `leaf` was shown.

    `notes` say in words what of it does not come.
    """

    id: str
    title: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    system_prompt: str = ""
    model: str = ""
    is_pinned: bool = False
    is_archived: bool = False
    nodes: list[Node] = field(default_factory=list)
    leaf: str | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class ForeignProject:
    """What several chats of a product share. `chats` are their ids there, where it says which."""

    name: str
    instructions: str = ""
    rules: list[str] = field(default_factory=list)
    files: list[ChatFile] = field(default_factory=list)
    chats: list[str] = field(default_factory=list)
    created_at: datetime | None = None


def list_times(nodes: Sequence[Node]) -> list[datetime]:
    """Return when the messages of a chat were written, as far as that is known."""
    messages = [node.message for node in nodes if node.message]
    return [message.created_at for message in messages if message.created_at]


def take_prompt(messages: list[ChatMessage]) -> str:
    """Take away the system text with which a chat begins, and return it."""
    return messages.pop(0).text if messages and messages[0].role == "system" else ""


def chain(messages: Sequence[ChatMessage]) -> list[Node]:
    """Return the messages of a chat without branches as nodes."""
    return [
        Node(id=str(index), parent=str(index - 1) if index else None, message=message)
        for index, message in enumerate(messages)
    ]

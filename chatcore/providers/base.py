"""What a provider is to the rest of the house: a request goes in, typed parts stream out. No SDK type crosses this line."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from chatcore.providers.unicode import mend_surrogates

EARLIER_MESSAGES_NOTICE = "(Earlier messages are not shown.)"  # in the user's role, where a protocol does not let the model speak first


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call as the model wrote it; `arguments` is JSON text, perhaps broken."""

    id: str
    name: str
    arguments: str

    def parse_arguments(self) -> dict[str, Any]:
        """The arguments as the JSON object that every protocol wants back; text that is none is carried under one key."""
        try:
            value = json.loads(
                mend_surrogates(json.dumps(json.loads(self.arguments or "{}"), ensure_ascii=False))
            )
        except (ValueError, RecursionError):
            value = None
        return value if isinstance(value, dict) else {"unreadable_arguments": self.arguments}


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool definition; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image to show to a model that sees."""

    media_type: str
    data: bytes


@dataclass(frozen=True, kw_only=True)
class File:
    """A text file as its message's content holds it, between fences (chatcore/files/rendering.py). `size`: bytes of the whole file."""

    name: str
    size: int
    text: str


@dataclass(frozen=True, kw_only=True)
class ChatMessage:
    """One message of a request. `seq` is the stored message's, None for what is not stored.

    `aside`: words of the user's role that are not the user's; joined with a message of the user's beside them where roles must alternate.
    """

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    images: tuple[Image, ...] = ()
    files: tuple[File, ...] = ()
    provider_data: dict[str, Any] = field(default_factory=dict)
    seq: int | None = None
    token_estimate: int = 0
    aside: bool = False


@dataclass(frozen=True, kw_only=True)
class Request:
    """Everything one call of a language model sends. `preface` is a second system text, of its own, after the first.

    `standing`: the part of `system` that stands for messages which are not sent; nothing is sent of it besides.
    """

    model: str
    system: str = ""
    preface: str = ""
    system_summary: str = ""
    messages: Sequence[ChatMessage] = ()
    tools: Sequence[Tool] = ()
    max_tokens: int | None = None
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens of one call. `input` includes cache reads and writes, whatever the provider's own habit is."""

    input: int
    output: int
    cache_read: int | None = None
    cache_write: int | None = None


@dataclass(frozen=True)
class TextDelta:
    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, kw_only=True)
class StreamEnd:
    """The last part of every complete stream; a stream that ends without one is a ProviderUnavailable error."""

    reason: Literal["stop", "length", "tool_calls", "refusal"]
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    provider_data: dict[str, Any] = field(default_factory=dict)


StreamPart = TextDelta | ReasoningDelta | StreamEnd


@dataclass(frozen=True, kw_only=True)
class Connection:
    """How to reach a provider; made from a registry row, so that providers never touch the ORM."""

    protocol: str
    base_url: str
    api_key: str = field(repr=False)
    options: dict[str, Any] = field(default_factory=dict)
    timeout_seconds: float = (
        120  # to the first event, retries and their waits included; then between events
    )
    max_retries: int = (
        2  # the SDK's own, before the first byte; 0 where the caller counts calls itself
    )


class ProviderClient(Protocol):
    """One wire protocol. Errors are the family in `errors`, and nothing else."""

    def stream(self, connection: Connection, request: Request) -> AsyncGenerator[StreamPart]:
        """Send the request; yield its parts as they arrive, `Finished` last. Closing it early closes the connection."""
        ...

    def translate_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters of OpenAI's chat completions in the words of this protocol.

        Raises InvalidParam.
        """
        ...

"""What the rest of Chatcore knows of a provider: a request goes in, typed parts stream out.

No type of an SDK leaves this package.
"""

import functools
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from models_registry.provider_options import ProviderOptions

MAX_NAME_CHARS = 64  # of a tool, for every provider
_UNUSABLE_SIGNS = re.compile(r"[^A-Za-z0-9_-]")
_HASH_CHARS = 7


def fit_name(name: str, max_chars: int = MAX_NAME_CHARS) -> str:
    """Return a tool's name in the form that every provider accepts.

    A name that must be changed or cut ends with a short hash, so that two tools keep two names.
    """
    fitting_name = _UNUSABLE_SIGNS.sub("_", name)
    if fitting_name == name and len(name) <= max_chars:
        return name
    mark = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:_HASH_CHARS]
    return f"{fitting_name[: max_chars - 1 - len(mark)]}_{mark}"


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A tool call as the model wrote it. `arguments` is JSON text, which may be broken."""

    id: str
    name: str
    arguments: str

    @property
    def sent_name(self) -> str:
        """The name in the form that every provider accepts.

        A client may use longer names, a model may make one up, and an import may have any text
        there; a provider would refuse every later request of the session.
        """
        return fit_name(self.name)

    def parse_arguments(self) -> dict[str, object]:
        """Return the arguments as a JSON object, which is what every protocol wants back.

        Text that is not a JSON object is returned under the key `unreadable_arguments`.
        """
        try:
            value = json.loads(self.arguments or "{}")
            # Halves of characters, written as escapes, appear only after the first parsing.
            value = json.loads(mend_surrogates(json.dumps(value, ensure_ascii=False)))
        except (ValueError, RecursionError):
            value = None
        return value if isinstance(value, dict) else {"unreadable_arguments": self.arguments}


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool definition; `parameters` is a JSON schema.

    `strict` asks the provider to hold the model to the schema, and `cache_control` to cache up to
    this tool, where the protocol has that. `native` is a tool that servers of Anthropic's protocol
    run themselves, in its words.
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    strict: bool = False
    cache_control: dict[str, object] | None = None
    native: Mapping[str, object] | None = None

    @functools.cached_property
    def text(self) -> str:
        """About what a model is sent to describe the tool; only its length matters."""
        return f"{self.name}{self.description}{json.dumps(self.parameters)}"


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image for a model that accepts images."""

    media_type: str
    data: bytes

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return len(self.data)


@dataclass(frozen=True, kw_only=True)
class File:
    """A text file that its message's content holds between fences (chatcore/files/rendering.py).

    `size` is the number of bytes of the whole file.
    """

    name: str
    size: int
    text: str


# Not frozen, which triples the cost of building one, and a request builds one for each message. All
# the same, nobody changes one: `dataclasses.replace` returns another.
@dataclass(kw_only=True, slots=True)
class ChatMessage:
    """One message of a request.

    `seq` is that of the stored message, None for a text that is not stored. A `pinned` message
    stays in a request that is trimmed, while there is room. An `aside` has the role of the user,
    but the user did not write it; where roles must alternate it is merged with a user message next
    to it. `recalled` marks the aside that repeats what was said before the boundary. `stored` has
    the text and the calls of the stored message, which a request may send in another form.
    """

    role: Literal["user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    images: tuple[Image, ...] = ()
    files: tuple[File, ...] = ()
    provider_data: dict[str, object] = field(default_factory=dict)
    seq: int | None = None
    token_estimate: int = 0
    pinned: bool = False
    aside: bool = False
    recalled: bool = False
    stored: tuple[str, tuple[ToolCall, ...]] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Everything that one call of a language model sends.

    `preface` is a second system text, after `system`. `system_summary` repeats the part of `system`
    that summarizes messages which are not sent; it is not sent again. `system_cache_control` asks
    to cache up to the end of `system`, where the protocol has that. With `wants_thoughts`, the
    parts of the answer include signed thoughts, each at its end. `output_limit` is how many tokens
    the model writes at most, where that is known; it is not sent.
    """

    model: str
    system: str = ""
    preface: str = ""
    system_summary: str = ""
    messages: Sequence[ChatMessage] = ()
    tools: Sequence[Tool] = ()
    max_tokens: int | None = None
    output_limit: int | None = None
    params: dict[str, object] = field(default_factory=dict)
    system_cache_control: dict[str, object] | None = None
    wants_thoughts: bool = False


MAX_COUNT = 10**9


def parse_count(value: object) -> int | None:
    """Return a number of tokens that a provider reports, or None for what cannot be one.

    Servers have sent negative and absurd numbers, objects and booleans; whole numbers as texts or
    with a decimal point are read.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value[:20])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value <= MAX_COUNT else None


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The tokens of one call. `input` always includes those read from and written to a cache.

    `thoughts` is how many tokens of the output were hidden reasoning, where the provider says so.
    """

    input: int
    output: int
    cache_read: int | None = None
    cache_write: int | None = None
    thoughts: int | None = None

    def add(self, other: "Usage") -> "Usage":
        """Return the tokens of both calls; unknown ones count as none."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=(self.cache_read or 0) + (other.cache_read or 0),
            cache_write=(self.cache_write or 0) + (other.cache_write or 0),
        )


@dataclass(frozen=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    """A piece of the model's reasoning, which is not part of the answer.

    `thought` is the signed thought that ends here, as its provider wants it back. It comes with an
    empty text, and only where the request wants it.
    """

    text: str
    thought: dict[str, object] | None = None


EndReason = Literal["stop", "length", "tool_calls", "refusal", "unknown"]
"""Why an answer ended. Of an "unknown" end the provider said a word that nobody here knows."""


@dataclass(frozen=True, kw_only=True)
class StreamEnd:
    """The last part of every complete stream. A stream without one raises ProviderUnavailable.

    `stop_sequence` is the text of the request at which the model stopped, where the provider says.
    `word` is the provider's own word for the end. `refused_tools` are those that it refused by
    name before it answered without them, `refused_params` the parameters that were left out because
    it refuses them. `learned` are facts of the server that its answer tells (`dialects.py`).
    """

    reason: EndReason
    stop_sequence: str | None = None
    word: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    provider_data: dict[str, object] = field(default_factory=dict)
    refused_tools: tuple[str, ...] = ()
    refused_params: tuple[str, ...] = ()
    learned: dict[str, object] = field(default_factory=dict)


StreamPart = TextDelta | ReasoningDelta | StreamEnd


@dataclass(frozen=True, kw_only=True)
class Connection:
    """How to reach a provider. It is built from a registry row, so providers do not use the ORM."""

    protocol: str
    base_url: str
    api_key: str = field(repr=False)
    options: ProviderOptions = field(default_factory=ProviderOptions)
    timeout_seconds: float = 120
    """Seconds until the first event, with all retries and their waits; then between events."""
    max_retries: int = 2
    """The SDK's retries before the first byte; 0 if the caller counts calls itself."""
    learned: Mapping[str, Mapping[str, object]] = field(default_factory=dict, repr=False)
    """Limits and fields that refusals of this server have named, by model (`dialects.py`)."""
    keep_facts: Callable[[str, dict[str, object]], Awaitable[None]] | None = field(
        default=None, compare=False, repr=False
    )
    """Stores the limits and fields that a refusal has named for a model."""
    keep_request: Callable[[bytes], None] | None = field(default=None, compare=False, repr=False)
    """Called with the body of each request as it is sent."""
    tell_reading: Callable[[int, int], None] | None = field(default=None, compare=False, repr=False)
    """Called with the tokens that the model has read of a request, and with how many it reads.

    Only servers that the row's option `tells_reading` names tell it."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a protocol can do; nobody outside of this package asks for its name."""

    has_messages_params: bool = False
    """Its parameters are those of Anthropic's Messages, thinking and effort among them."""
    has_signed_thoughts: bool = False
    """A thought goes back with its signature; otherwise as its own model's bare text."""
    has_cache_marks: bool = False
    """Requests mark what is cached, for their choice of tools and their effort alone."""
    has_other_requests: bool = False
    """There are embeddings and completions, too."""
    address_path: str = ""
    """What follows the host in an address that is given without a path."""
    has_variants: bool = False
    """Its servers differ in their role for system texts, and in the name of an answer's limit."""


class SurrogateJoiner:
    """Joins the halves of a stream's characters; a half that stays alone becomes U+FFFD.

    JSON may write an emoji as two escapes, and a server may cut its stream between them.
    """

    def __init__(self) -> None:
        self._pending_half = ""

    def join(self, text: str) -> str:
        """Return the complete characters; a first half at the end waits for the second."""
        text = self._pending_half + text
        self._pending_half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return mend_surrogates(text[: len(text) - len(self._pending_half)])


def mend_surrogates(text: str) -> str:
    """Return the text with surrogate pairs joined, and lone surrogates replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

"""What a host must offer to be compacted, in words that are no host's own. A new host is one file beside this one."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from uuid import UUID

from compaction.core.estimate import LastUsage
from compaction.core.pipeline import Outcome
from compaction.core.transcript import Transcript

STORED_CHARS_PER_TOKEN = 4  # what the host's stored estimates count by


class Stale(Exception):
    """The context changed since the transcript was loaded; nothing was installed."""


class CallFailed(Exception):
    """A call of a language model that did not end with an answer, and what about it the model did not take.

    `too_long`: the request; then the numbers are the provider's, in tokens. `temperature`: that it was set at all.
    """

    def __init__(
        self, detail: str, *, too_long: bool = False, tokens: int | None = None, window: int | None = None, temperature: bool = False
    ) -> None:
        super().__init__(detail)
        self.too_long = too_long
        self.tokens = tokens
        self.window = window
        self.temperature = temperature


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is known of a session without reading its messages. Names are empty where nothing is set; windows are tokens, None unknown."""

    session_id: UUID
    policy: str
    model_policy: str
    model: str
    window: int | None
    summary_model: str
    summary_window: int | None
    automatic: bool
    version: int
    held: bool  # the user went back to an earlier context, and nothing was installed since
    summary: str | None
    boundary_seq: int | None
    system_chars: int
    tool_chars: int
    message_count: int
    last_seq: int


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A call without tools: a fixed system text, and one message that holds everything else."""

    system: str
    text: str
    max_tokens: int
    temperature: float | None  # None: the model's own
    model: str = ""  # the writer's name; empty: the session's own
    timeout: float = 240.0  # seconds, for the whole call


@dataclass(frozen=True, kw_only=True)
class Writer:
    """The language model that writes a session's summaries. `model` is empty where there is none; tokens, None unknown."""

    model: str
    window: int | None = None
    max_output: int | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back from a call, and what it took. Tokens are the provider's count, or an estimate where it gave none."""

    text: str
    finish: Literal["stop", "length", "tool_calls", "refusal"]
    model: str
    input_tokens: int
    output_tokens: int
    input_price: Any = None  # Decimal per million tokens
    output_price: Any = None


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A built request as the core reads it: its messages numbered by their place, from 1, and the last usage in those numbers."""

    transcript: Transcript
    usage: LastUsage | None


class Backend(Protocol):
    """The host. It translates and decides nothing."""

    def on_response(self, receiver: Callable[..., None], uid: str) -> None:
        """Call `receiver(session_id=…)` after every response, once it is committed."""
        ...

    def subject(self, session_id: UUID) -> Subject | None:
        """The session, or None when it is gone."""
        ...

    def last_usage(self, subject: Subject) -> LastUsage | None:
        """What the provider counted in the last call of this model on this very context."""
        ...

    def weight(self, subject: Subject, *, after_seq: int = 0) -> int:
        """Estimated tokens of the live messages after a seq, at STORED_CHARS_PER_TOKEN: one aggregate, no message is loaded."""
        ...

    def live_count(self, subject: Subject) -> int:
        """How many messages are sent as they are."""
        ...

    def newest_prompt(self, subject: Subject) -> int:
        """Estimated tokens of the newest user message, at STORED_CHARS_PER_TOKEN; 0 for none."""
        ...

    def last_model(self, subject: Subject) -> str:
        """The model that gave the newest answer; empty before the first."""
        ...

    def load(self, subject: Subject) -> Transcript:
        """What the next request would send, read together with its version."""
        ...

    def install(self, session_id: UUID, transcript: Transcript, outcome: Outcome, *, run: str) -> int:
        """Install an outcome over the transcript it was made from; the new version. Raises Stale. Joins the open transaction."""
        ...

    def rewind(self, session_id: UUID, *, to_version: int) -> int:
        """Go back to an earlier version; the new version."""
        ...

    def writer(self, session_id: UUID, wanted: str) -> Writer:
        """Who writes the summaries: the model that the session's own names for it, else the one `wanted` (`same`: none), else the own.

        One that is unknown or not active is passed over, with a warning.
        """
        ...

    def ask(self, session_id: UUID, prompt: Prompt) -> Answer:
        """One call, exactly one request on the wire, of the model that the prompt names. Raises CallFailed. Outside any transaction."""
        ...

    def announce(self, session_id: UUID, *events: tuple[str, dict[str, Any]]) -> None:
        """Tell whoever watches the session; joins the open transaction."""
        ...

    def recover(self) -> int:
        """Close what the host's dead processes left open; how many."""
        ...

    def session_ids(self, owner: Any) -> Any:
        """The ids of a user's sessions, as something `filter(session_id__in=…)` takes."""
        ...

    def rebuild(self, session: Any, request: Any = None) -> Any:
        """The next request, built anew from storage; with the tools of `request`, or the session's."""
        ...

    def read(self, request: Any, usage: LastUsage | None) -> Draft:
        """A built request as the core reads it."""
        ...

    def keep(self, request: Any, places: Collection[int]) -> Any:
        """The same request with only the messages at these places (from 1)."""
        ...

    def fit(self, request: Any, *, version: int | None, notices: tuple[str, ...] = ()) -> Any:
        """The answer that the host's guard gives."""
        ...

    def overflow(self, detail: str, *, tokens: int, window: int) -> Exception:
        """The host's error for a request that can never fit."""
        ...

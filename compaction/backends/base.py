"""What a host must offer to be compacted, in words that are no host's own. A new host is one room beside this file."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from uuid import UUID

from compaction.core.estimate import LastUsage
from compaction.core.outcome import Outcome
from compaction.core.transcript import Transcript

STORED_CHARS_PER_TOKEN = 4  # what the host's stored estimates count by


class StaleTranscript(Exception):
    """The context changed since the transcript was loaded; nothing was installed."""


class CallFailed(Exception):
    """A call of a language model that did not end with an answer, and what about it the model did not take.

    `too_long`: the request; then the numbers are the provider's, in tokens. `temperature`: that it was set at all.
    """

    def __init__(
        self,
        detail: str,
        *,
        too_long: bool = False,
        tokens: int | None = None,
        window: int | None = None,
        temperature: bool = False,
    ) -> None:
        super().__init__(detail)
        self.too_long = too_long
        self.tokens = tokens
        self.window = window
        self.temperature = temperature


@dataclass(frozen=True, kw_only=True)
class SessionFacts:
    """What is known of a session without reading its messages. Names are empty where nothing is set; windows are tokens, None unknown."""

    session_id: UUID
    policy: str
    model_policy: str
    model: str
    window: int | None
    family: str
    output_reserve: int | None  # of the model's window, in tokens; None unknown
    max_tokens: int | None  # that the session asks of an answer
    compact_threshold: float | None  # of the session's own
    summary_model: str
    is_automatic: bool
    version: int
    is_rewound: bool  # the user went back to an earlier context, and nothing was installed since
    summary: str | None
    boundary_seq: int | None
    kept_seqs: tuple[
        int, ...
    ]  # older than the boundary, and sent all the same; pinned ones are not among them
    reference_chars: int  # of what is said with the summary, or in its place
    system_chars: int
    tool_chars: int
    attached_tokens: int  # of texts attached to live messages, at STORED_CHARS_PER_TOKEN
    attached_images: int
    message_count: int
    last_seq: int


def build_sessionless_facts(**facts: Any) -> SessionFacts:
    """A model alone, of which these facts are known."""
    defaults: dict[str, Any] = dict.fromkeys(("compact_threshold", "summary", "boundary_seq"))
    defaults |= dict.fromkeys(("policy", "summary_model"), "") | {
        "kept_seqs": (),
        "is_automatic": True,
        "is_rewound": False,
    }
    count_names = (
        "version",
        "reference_chars",
        "system_chars",
        "tool_chars",
        "attached_tokens",
        "attached_images",
        "message_count",
        "last_seq",
    )
    return SessionFacts(session_id=UUID(int=0), **defaults | dict.fromkeys(count_names, 0) | facts)


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
class SummaryModel:
    """The language model that writes a session's summaries. `model` is empty where there is none; tokens, None unknown.

    `echoes`: it is told headings alone, since it gives back what they are for.
    """

    model: str
    echoes_headings: bool = False
    window: int | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """What came back from a call, and what it took. Tokens are the provider's count, or an estimate where it gave none."""

    text: str
    finish: Literal["stop", "length", "tool_calls", "refusal"]
    model: str
    input_tokens: int
    output_tokens: int
    input_price: Any = None  # Decimal per million tokens
    output_price: Any = None


@dataclass(frozen=True, kw_only=True)
class ParsedRequest:
    """A built request as the core reads it: its messages numbered by their place, from 1, and the last usage in those numbers."""

    transcript: Transcript
    last_usage: LastUsage | None


class Backend(Protocol):
    """The host. It translates and decides nothing."""

    def subscribe_to_responses(self, receiver: Callable[..., None], uid: str) -> None:
        """Call `receiver(session_id=…)` after every response, once it is committed."""
        ...

    def load_session_facts(self, session_id: UUID) -> SessionFacts | None:
        """The session, or None when it is gone."""
        ...

    def load_last_usage(self, facts: SessionFacts) -> LastUsage | None:
        """What the provider counted in the last call of this model on this very context."""
        ...

    def sum_message_tokens(
        self, facts: SessionFacts, *, after_seq: int = 0, before_seq: int | None = None
    ) -> int:
        """Estimated tokens of the live messages after and before a seq, at STORED_CHARS_PER_TOKEN: one aggregate, no message is loaded."""
        ...

    def count_live_messages(self, facts: SessionFacts) -> int:
        """How many messages are sent as they are."""
        ...

    def load_newest_prompt_tokens(self, facts: SessionFacts) -> int:
        """Estimated tokens of the newest user message, at STORED_CHARS_PER_TOKEN; 0 for none."""
        ...

    def load_last_model(self, facts: SessionFacts) -> str:
        """The model that gave the newest answer; empty before the first."""
        ...

    def load_transcript(
        self, facts: SessionFacts, *, fit_request: Callable[[Any], Any] | None = None
    ) -> Transcript:
        """What the next request would send, read together with its version. `fit`: what is done to a built request before it is sent."""
        ...

    def install_outcome(
        self,
        session_id: UUID,
        transcript: Transcript,
        outcome: Outcome,
        *,
        run: str,
        background: str = "",
        placement: Mapping[str, Any] | None = None,
    ) -> int:
        """Install an outcome over the transcript it was made from; the new version. Raises Stale. Joins the open transaction.

        `background`: text for the model's reference, sent with the summary. `placement`: {place, heading, nudge, marker, after_seq}, where
        all that stands and what is said around it.
        """
        ...

    def rewind_context(self, session_id: UUID, *, to_version: int) -> int:
        """Go back to an earlier version; the new version."""
        ...

    def reset_context(self, session_id: UUID) -> int:
        """Forget the summary and send the whole history again, with the same reference text; the new version."""
        ...

    def set_background(self, session_id: UUID, background: str) -> None:
        """Send this reference text with the summary from now on: a new version, unless it is what is sent. Joins the open transaction."""
        ...

    def choose_summary_model(self, session_id: UUID, model_name: str) -> SummaryModel:
        """Who writes the summaries: the model that the session's own names for it, else the one `wanted` (`same`: none), else the own.

        One that is unknown or not active is passed over, with a warning.
        """
        ...

    def call_summary_model(self, session_id: UUID, prompt: Prompt) -> CallResult:
        """One call, exactly one request on the wire, of the model that the prompt names. Raises CallFailed. Outside any transaction."""
        ...

    def announce_events(self, session_id: UUID, *events: tuple[str, dict[str, Any]]) -> None:
        """Tell whoever watches the session; joins the open transaction."""
        ...

    def recover_turns(self) -> int:
        """Close what the host's dead processes left open; how many."""
        ...

    def list_session_ids(self, owner: Any) -> Any:
        """The ids of a user's sessions, as something `filter(session_id__in=…)` takes."""
        ...

    def rebuild_request(self, session: Any, request: Any = None) -> Any:
        """The next request, built anew from storage; with the tools of `request`, or the session's."""
        ...

    def parse_request(
        self, request: Any, last_usage: LastUsage | None, *, family: str = ""
    ) -> ParsedRequest:
        """A built request as the core reads it, for a model of that family."""
        ...

    def keep_messages(self, request: Any, positions: Collection[int]) -> Any:
        """The same request with only the messages at these places (from 1)."""
        ...

    def append_system_text(self, request: Any, text: str) -> Any:
        """The same request with a paragraph more at the end of its system text."""
        ...

    def count_tool_rounds(self, facts: SessionFacts) -> tuple[int, int]:
        """How often the model has called tools since the user last spoke, and how many calls these were."""
        ...

    def find_violations(self, session_id: UUID) -> list[str]:
        """What does not hold of all that is stored of a session, one sentence each."""
        ...

    def is_answering(self, facts: SessionFacts) -> bool:
        """Whether an answer is being generated that nobody has canceled."""
        ...

    def list_text_files(self, request: Any) -> list[tuple[int, str]]:
        """The text files in a built request, in order: how many bytes each had, and its text."""
        ...

    def replace_file_texts(self, request: Any, texts: Sequence[str]) -> Any:
        """The same request with other texts in its files, one for each."""
        ...

    def build_model_facts(self, model: Any, request: Any) -> SessionFacts:
        """What is known of a request that belongs to no session: its model's facts, and no more."""
        ...

    def build_fit_answer(
        self,
        request: Any,
        *,
        version: int | None,
        notices: tuple[str, ...] = (),
        tokens: int | None = None,
    ) -> Any:
        """The answer that the host's guard gives. `tokens`: about how many the request has."""
        ...

    def build_overflow_error(self, detail: str, *, tokens: int, window: int) -> Exception:
        """The host's error for a request that can never fit."""
        ...

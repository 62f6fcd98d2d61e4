"""Define how a host calls the language models that write summaries."""

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, Protocol
from uuid import UUID

from compaction.packing import pack_text

if TYPE_CHECKING:  # users are models: at run time they cannot be imported before the apps are ready
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class CallFailed(Exception):
    """A call of a language model ended without an answer.

    `too_long` means that the provider refused the request for its length; `tokens` and `window` are
    then the provider's numbers, in tokens, where it gave them. `temperature` means that the model
    accepts no temperature. `seconds` is how long the call was waited for, where it was stopped.
    `is_final` means that another call would fail too, as with a refused key.
    """

    def __init__(
        self,
        detail: str,
        *,
        too_long: bool = False,
        tokens: int | None = None,
        window: int | None = None,
        temperature: bool = False,
        seconds: float | None = None,
        is_final: bool = False,
    ) -> None:
        super().__init__(detail)
        self.too_long = too_long
        self.tokens = tokens
        self.window = window
        self.temperature = temperature
        self.seconds = seconds
        self.is_final = is_final


class ModelNotUsable(Exception):
    """A model cannot write the summary that it was chosen for; the text says why, for people."""


class CallTrace:
    """What a backend notes of a call while it makes it, for those who look into the run.

    `answer` is the text that has come so far, word for word.
    """

    def __init__(self) -> None:
        self.answer = ""
        self._request = b""
        self._packing: threading.Thread | None = None

    def keep_request(self, body: bytes) -> None:
        """Keep the body as it was sent. Another thread packs it while the model writes."""
        self._packing = threading.Thread(target=self._pack, args=(body,), daemon=True)
        self._packing.start()

    def take_request(self) -> bytes:
        """Return the body, as it is stored; nothing if none was kept."""
        if self._packing is not None:
            self._packing.join()
        return self._request

    def _pack(self, body: bytes) -> None:
        self._request = pack_text(body)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A call: a fixed system text, and one message that holds everything else."""

    system: str
    text: str
    max_tokens: int
    temperature: float | None  # None: the model's default
    model: str = ""  # the name of the model to call; empty: the session's own
    timeout: float = 240.0  # seconds, for the whole call
    first_word_seconds: float = 0.0  # that a slow model may need before its first word
    rides_talk: bool = False  # the text follows what the session's next request sends
    # Called about once a second, in another thread, with what was written so far; optional for a
    # backend. What it raises ends the call.
    report: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    # Takes what was sent and what came; optional for a backend.
    trace: CallTrace | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class SummaryModel:
    """The language model that writes a session's summaries; `model` is empty where there is none.

    `echoes_headings` marks a small model that copies explanations of headings into its answer, so
    that its prompt must hold bare headings. Sizes are tokens; None is unknown.
    """

    model: str
    echoes_headings: bool = False
    timeout: float = 0.0  # seconds that a call of it needs at least, where somebody knows
    window: int | None = None
    max_output_tokens: int | None = None
    input_price: Decimal | None = None  # for a million tokens; None is unknown
    cached_input_price: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """A language model's answer and its cost.

    Token counts are the provider's, or estimates where it gave none. `cached_tokens` are those of
    the input that came from a cache. `cost` is None where it is unknown. `prompt_seconds` is the
    time to the first word, and `answer_seconds` that from there to the end.
    """

    text: str
    finish: Literal["stop", "length", "tool_calls", "refusal", "unknown"]
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    prompt_seconds: float = 0.0
    answer_seconds: float = 0.0
    cost: Decimal | None = None


class SummaryCaller(Protocol):
    """The language models that write summaries."""

    def choose_summary_model(
        self, session_id: UUID, model_name: str, *, chosen_name: str = ""
    ) -> SummaryModel:
        """Return the model that writes a session's summaries.

        It is `chosen_name`, which somebody chose for one run, else the one that the session's
        model names for this, else `model_name` (`same` names none), else the session's model. A
        model that is unknown or inactive is skipped with a warning in the log.
        """
        ...

    def find_summary_model(self, user: "AbstractBaseUser | AnonymousUser", name: str) -> str:
        """Return the full name of a model that a user may choose. Raises ModelNotUsable."""
        ...

    def load_places(self, providers: Collection[str]) -> Mapping[str, int]:
        """Return how many runs each of these providers takes at once; left out: any number."""
        ...

    def load_cached_tokens(self, session_id: UUID) -> int:
        """Return the tokens of the talk that its provider has just read from a cache."""
        ...

    def call_summary_model(self, session_id: UUID, prompt: Prompt) -> CallResult:
        """Send exactly one request to the prompt's model. Call it outside any transaction.

        Raises CallFailed.
        """
        ...

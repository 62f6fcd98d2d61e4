"""The interface to the compactor, which keeps a conversation inside its context window.

CHATCORE["COMPACTOR"] names the class.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from chatcore.base.truncation import cut_tool_result
from chatcore.context.recalled import RecalledPassage
from chatcore.models import Message, Session
from chatcore.providers import overflow
from chatcore.providers.base import ChatMessage, Request
from chatcore.providers.errors import ContextOverflow
from models_registry.models import AiModel


@dataclass(frozen=True, kw_only=True)
class FittedRequest:
    """The request to send, made to fit the context window of its model.

    `context_version` is the version of the context that the request holds, or None if messages
    were left out to make it fit. `tokens` is the estimated size in tokens, where it was measured.
    `measure_answer` returns the usage of the context after the answer to this request, by what is
    known of both; None if it is to be measured by the check after the response.
    """

    request: Request
    context_version: int | None
    notices: tuple[str, ...] = ()
    tokens: int | None = None
    measure_answer: Callable[[Message], Mapping[str, Any] | None] | None = None


@dataclass(frozen=True, kw_only=True)
class CompactionReport:
    """How a compaction that was asked for has ended, and what its model read and wrote.

    `status` is that of its run: applied, skipped, failed …
    """

    run_id: str
    status: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, kw_only=True)
class CompactionLoad:
    """The compaction work of all machines at one moment.

    Runs wait or are worked on; `workers` are the commands that have been heard of lately.
    """

    queued: int
    running: int
    oldest_seconds: float
    workers: int


@dataclass(frozen=True, slots=True)
class TruncatedOutput:
    """The part of a tool's output that is stored in its message.

    `original_chars` is the length of the whole output if it was cut, and `full_text` the whole
    output if it is to be stored as a file of the message; both are None otherwise.
    """

    content: str
    original_chars: int | None
    full_text: str | None = None


class Policy:
    """A compaction policy, as far as the conversation asks it: this one changes nothing."""

    name: str = ""

    @property
    def sentence(self) -> str:
        """Return what the policy does, in the reader's language."""
        return ""

    def truncate_output(self, text: str) -> TruncatedOutput:
        """Return the part of a tool's output that is stored in its message. Never raises."""
        return TruncatedOutput(*cut_tool_result(text))

    def validate_threshold(self, threshold: float, *, model: AiModel | None = None) -> None:
        """Check a session's own threshold, a share of the context window or a number of tokens.

        The number is checked against the window of `model`. Raises Django's ValidationError, which
        names the field, if the policy cannot work with it.
        """

    def may_have_written(self, text: str, *, original: str = "") -> bool:
        """Return True if the policy puts this into requests, in place of the original or alone."""
        return False

    def choose_passages(
        self, session: Session, question: ChatMessage, request: Request
    ) -> Sequence[RecalledPassage] | None:
        """Return what a turn brings back from before the boundary for its question.

        `request` is what it sends without that. None if the policy never brings anything back.
        """
        return None

    def leave_out_forgotten(
        self, session_id: UUID, texts: Sequence[tuple[int, str, str]]
    ) -> Sequence[str]:
        """Return these texts without what the user wants forgotten.

        Each comes with the number and the role of its message.
        """
        return [text for _, _, text in texts]


class Compactor:
    """Decides how a conversation stays inside the context window of its model.

    Most methods are called outside any transaction, because they may wait for a language model. An
    instance lives for one call, so it keeps no state of its own. What it only has to know of a
    conversation, signals announce (chatcore/signals.py).

    This one changes no request and learns nothing, which is what a project without one has.
    """

    def before_request(self, session: Session, request: Request) -> FittedRequest:
        """Return the request in a form that fits. Raises ContextOverflow if none can fit."""
        return FittedRequest(request=request, context_version=session.context_version)

    def preview_request(self, session: Session, request: Request) -> FittedRequest:
        """Return the request as `before_request` would send it now, and change nothing.

        No model is called, and a request that can never fit raises nothing.
        """
        return FittedRequest(request=request, context_version=session.context_version)

    def after_overflow(self, session: Session, request: Request, error: ContextOverflow) -> bool:
        """Make room after the provider refused `request` as too long.

        Returns True if the request, built again, will be smaller, so that it is worth sending.
        """
        return False

    def estimate_tokens(self, session: Session) -> int:
        """Return the estimated tokens of the session's next request; 0 if they are not known."""
        return 0

    def compact_session(
        self, session: Session, *, instructions: str = ""
    ) -> CompactionReport | None:
        """Compact the session now, and return how that ended; None if nothing can compact it.

        `instructions` say what the summary should pay attention to.
        """
        return None

    def fit_request(
        self, model: AiModel, request: Request, *, overflow: ContextOverflow | None = None
    ) -> FittedRequest:
        """Return a request that belongs to no session in a form that fits its model.

        `overflow` is the provider's refusal of an earlier form; the result must then be smaller.
        Raises ContextOverflow if no form can fit.
        """
        if overflow is not None:
            raise overflow
        return FittedRequest(request=request, context_version=0)

    def shorten_request(
        self, model: AiModel, request: Request, *, limit_tokens: int
    ) -> FittedRequest | None:
        """Return a request without its oldest messages, after its provider refused it as too long.

        What remains has about `limit_tokens`, or is all that cannot be left out. Returns None if
        nothing can be. Unlike `fit_request` it asks no policy.
        """
        return None

    def estimate_request(self, model: AiModel, request: Request) -> int:
        """Return the estimated tokens of a request that belongs to no session, all of it."""
        return overflow.measure_request(request).tokens

    def learn_from_answer(
        self,
        model: AiModel,
        request: Request,
        *,
        counted_tokens: int | None = None,
        window: int | None = None,
    ) -> None:
        """Learn what an answered request has shown of its model.

        The provider counted `counted_tokens` in it, and refuses more than `window` tokens.
        """

    def list_policies(self) -> Mapping[str, Policy]:
        """Return the policies to offer by their names, in the order of a menu."""
        return {}

    def choose_policy(self, *names: str) -> Policy:
        """Return the policy of the first of these names that is set and usable, or the project's.

        This may be called inside a transaction, so it must not wait for anything.
        """
        return Policy()

    def measure_load(self) -> CompactionLoad | None:
        """Return the work that waits and runs on all machines; None if there is no queue."""
        return None


def get_compactor() -> Compactor:
    """Return the compactor that the settings name, or one that changes nothing.

    The class is looked up at each call, so that tests and running projects can change the setting;
    importing a module that is already loaded costs a few microseconds.
    """
    path = settings.CHATCORE.get("COMPACTOR")
    if not path:
        return Compactor()
    compactor: Compactor = import_string(path)()
    return compactor

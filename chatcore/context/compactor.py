"""The interface to the compactor, which keeps a conversation inside its context window.

CHATCORE["COMPACTOR"] names the class.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from chatcore.base.token_estimate import estimate_tokens
from chatcore.base.truncation import cut_tool_result
from chatcore.models import Session
from chatcore.providers.base import ChatMessage, Request
from chatcore.providers.errors import ContextOverflow
from models_registry.models import AiModel


@dataclass(frozen=True, kw_only=True)
class FittedRequest:
    """The request to send, made to fit the context window of its model.

    `context_version` is the version of the context that the request holds, or None if messages
    were left out to make it fit. `tokens` is the estimated size in tokens; it is set for
    requests that belong to no session, and for previews.
    """

    request: Request
    context_version: int | None
    notices: tuple[str, ...] = ()
    tokens: int | None = None


class CompactionReport(Protocol):
    """How a compaction that was asked for has ended."""

    @property
    def run_id(self) -> str:
        """The id of its run."""
        ...

    @property
    def status(self) -> str:
        """The status of its run: applied, skipped, failed …"""
        ...

    @property
    def input_tokens(self) -> int:
        """What the model read to summarize."""
        ...

    @property
    def output_tokens(self) -> int:
        """What the model wrote."""
        ...


class CompactionLoad(Protocol):
    """The compaction work of all machines at this moment."""

    @property
    def queued(self) -> int:
        """How many runs wait."""
        ...

    @property
    def running(self) -> int:
        """How many runs are worked on."""
        ...

    @property
    def oldest_seconds(self) -> float:
        """How long the oldest queued run has waited."""
        ...

    @property
    def workers(self) -> int:
        """How many worker commands have been heard of lately."""
        ...


class RecallPlan(Protocol):
    """How much of what was said before the boundary a turn brings back into its requests."""

    @property
    def tokens(self) -> int:
        """The most estimated tokens that the whole block may take."""
        ...

    @property
    def threshold(self) -> float:
        """The least score of a passage that is worth it, from 0 to 1."""
        ...


class TruncatedOutput(Protocol):
    """The part of a tool's output that is stored in its message."""

    @property
    def content(self) -> str:
        """The text of the message."""
        ...

    @property
    def original_chars(self) -> int | None:
        """Length of the whole output in characters; None if nothing was cut."""
        ...

    @property
    def full_text(self) -> str | None:
        """The whole output, if it is to be stored as a file of the message; else None."""
        ...


class Policy(Protocol):
    """A compaction policy, as far as the conversation asks it."""

    @property
    def name(self) -> str:
        """What sessions and models call it."""
        ...

    @property
    def recall(self) -> RecallPlan | None:
        """How much a turn brings back from before the boundary; None for nothing."""
        ...

    def truncate_output(self, text: str) -> TruncatedOutput:
        """Return the part of a tool's output that is stored in its message. Never raises."""
        ...

    def validate_threshold(self, threshold: float) -> None:
        """Check a session's own threshold, a share of the context window from 0 to 1.

        Raises Django's ValidationError, which names the field, if the policy cannot work with it.
        """
        ...

    def may_have_written(self, text: str, *, original: str = "") -> bool:
        """Return True if the policy puts this into requests, in place of the original or alone."""
        ...


class Compactor(Protocol):
    """Decides how a conversation stays inside the context window of its model.

    Most methods are called outside any transaction, because they may wait for a language model. An
    instance lives for one call, so it keeps no state of its own. What it only has to know of a
    conversation, signals announce (chatcore/signals.py).
    """

    def before_request(self, session: Session, request: Request) -> FittedRequest:
        """Return the request in a form that fits. Raises ContextOverflow if none can fit."""
        ...

    def preview_request(self, session: Session, request: Request) -> FittedRequest:
        """Return the request as `before_request` would send it now, and change nothing.

        No model is called, and a request that can never fit raises nothing.
        """
        ...

    def after_overflow(self, session: Session, request: Request, error: ContextOverflow) -> bool:
        """Make room after the provider refused `request` as too long.

        Returns True if the request, built again, will be smaller, so that it is worth sending.
        """
        ...

    def estimate_tokens(self, session: Session) -> int:
        """Return the estimated tokens of the session's next request; 0 if they are not known."""
        ...

    def compact_session(
        self, session: Session, *, instructions: str = ""
    ) -> CompactionReport | None:
        """Compact the session now, and return how that ended; None if nothing can compact it.

        `instructions` say what the summary should pay attention to.
        """
        ...

    def fit_request(
        self, model: AiModel, request: Request, *, overflow: ContextOverflow | None = None
    ) -> FittedRequest:
        """Return a request that belongs to no session in a form that fits its model.

        `overflow` is the provider's refusal of an earlier form; the result must then be smaller.
        Raises ContextOverflow if no form can fit.
        """
        ...

    def shorten_request(
        self, model: AiModel, request: Request, *, limit_tokens: int
    ) -> FittedRequest | None:
        """Return a request without its oldest messages, after its provider refused it as too long.

        What remains has about `limit_tokens`, or is all that cannot be left out. Returns None if
        nothing can be. Unlike `fit_request` it asks no policy.
        """
        ...

    def estimate_request(self, model: AiModel, request: Request) -> int:
        """Return the estimated tokens of a request that belongs to no session, all of it."""
        ...

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
        ...

    def list_policies(self) -> Mapping[str, Policy]:
        """Return the policies to offer by their names, in the order of a menu."""
        ...

    def choose_policy(self, *names: str) -> Policy:
        """Return the policy of the first of these names that is set and usable, or the project's.

        This may be called inside a transaction, so it must not wait for anything.
        """
        ...

    def measure_load(self) -> CompactionLoad | None:
        """Return the work that waits and runs on all machines; None if there is no queue."""
        ...


@dataclass(frozen=True, kw_only=True)
class PlainTruncation:
    """The beginning of a tool's output, up to the default limit in characters."""

    content: str
    original_chars: int | None
    full_text: None = None


class NullPolicy:
    """The policy of a project without a compactor."""

    name = ""
    recall = None

    def truncate_output(self, text: str) -> TruncatedOutput:
        content, original_chars = cut_tool_result(text)
        return PlainTruncation(content=content, original_chars=original_chars)

    def validate_threshold(self, threshold: float) -> None:
        pass

    def may_have_written(self, text: str, *, original: str = "") -> bool:
        return False


class NullCompactor:
    """The compactor of a project that has none: it changes no request and learns nothing."""

    def before_request(self, session: Session, request: Request) -> FittedRequest:
        return FittedRequest(request=request, context_version=session.context_version)

    def preview_request(self, session: Session, request: Request) -> FittedRequest:
        return FittedRequest(request=request, context_version=session.context_version)

    def after_overflow(self, session: Session, request: Request, error: ContextOverflow) -> bool:
        return False

    def estimate_tokens(self, session: Session) -> int:
        return 0

    def compact_session(
        self, session: Session, *, instructions: str = ""
    ) -> CompactionReport | None:
        return None

    def fit_request(
        self, model: AiModel, request: Request, *, overflow: ContextOverflow | None = None
    ) -> FittedRequest:
        if overflow is not None:
            raise overflow
        return FittedRequest(request=request, context_version=0)

    def shorten_request(
        self, model: AiModel, request: Request, *, limit_tokens: int
    ) -> FittedRequest | None:
        return None

    def estimate_request(self, model: AiModel, request: Request) -> int:
        texts = (request.system, *(tool.text for tool in request.tools))
        char_count = sum(len(text) for text in texts)
        return estimate_tokens(char_count + sum(map(_count_chars, request.messages)))

    def learn_from_answer(
        self,
        model: AiModel,
        request: Request,
        *,
        counted_tokens: int | None = None,
        window: int | None = None,
    ) -> None:
        pass

    def list_policies(self) -> Mapping[str, Policy]:
        return {}

    def choose_policy(self, *names: str) -> Policy:
        return NullPolicy()

    def measure_load(self) -> CompactionLoad | None:
        return None


def _count_chars(message: ChatMessage) -> int:
    calls = message.tool_calls
    return len(message.content) + sum(len(call.name) + len(call.arguments) for call in calls)


def get_compactor() -> Compactor:
    """Return the compactor that the settings name, or the null compactor.

    The class is looked up at each call, so that tests and running projects can change the setting;
    importing a module that is already loaded costs a few microseconds.
    """
    path = settings.CHATCORE.get("COMPACTOR")
    if not path:
        return NullCompactor()
    compactor: Compactor = import_string(path)()
    return compactor

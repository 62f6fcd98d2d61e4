"""The interface to the compactor, which keeps a conversation inside its context window.

CHATCORE["COMPACTOR"] names the class.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from chatcore.models import Session
from chatcore.providers.base import ChatMessage, Request
from chatcore.providers.errors import ContextOverflow
from chatcore.sessions.token_estimate import estimate_tokens
from chatcore.sessions.truncation import cut_tool_result
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


class Compactor(Protocol):
    """Decides how a conversation stays inside the context window of its model.

    Methods whose names begin with `on_` are called inside the transaction that makes the change,
    while the session's row is locked. All others are called outside any transaction, because they
    may wait for a language model. An instance lives for one call, so it keeps no state of its own.
    """

    def before_request(self, session: Session, request: Request) -> FittedRequest:
        """Return the request in a form that fits. Raises ContextOverflow if none can fit."""
        ...

    def preview_request(self, session: Session, request: Request) -> FittedRequest:
        """Return the request as `before_request` would send it now, and change nothing.

        No model is called, and a request that can never fit raises nothing.
        """
        ...

    def preview_switch(self, session: Session, *, provider: str, model: str) -> int:
        """Return how many messages would be summarized before a request to another model.

        No model is called, and nothing changes.
        """
        ...

    def after_overflow(self, session: Session, request: Request, error: ContextOverflow) -> bool:
        """Make room after the provider refused `request` as too long.

        Returns True if the request, built again, will be smaller, so that it is worth sending.
        """
        ...

    def on_messages_deleted(self, session: Session, seqs: Collection[int]) -> None:
        """Forget everything that was written from these messages; they are being deleted."""
        ...

    def on_messages_superseded(self, session: Session, seqs: Collection[int]) -> None:
        """Revert what was derived from these messages, apart from summaries.

        The messages are either no longer part of the current conversation, or part of it again.
        """
        ...

    def on_session_forked(self, source: Session, fork: Session, last_seq: int) -> None:
        """Copy what is stored with the summary of `source` to its fork.

        The fork has copies of the messages of `source` up to and including number `last_seq`.
        """
        ...

    def export_ledger(self, session: Session) -> Sequence[Mapping[str, Any]]:
        """Return what people did with the session's ledger, as JSON values."""
        ...

    def import_ledger(self, session: Session, lines: Sequence[Any]) -> None:
        """Store what `export_ledger` returned, in the transaction that imports the session.

        Raises Django's ValidationError, which names the line and its field.
        """
        ...

    def export_leaves(self, session: Session) -> Sequence[Mapping[str, Any]]:
        """Return what the session's summary is composed of, as JSON values."""
        ...

    def import_leaves(self, session: Session, leaves: Sequence[Any]) -> None:
        """Store what `export_leaves` returned, after the summary, in the same transaction.

        Raises Django's ValidationError, which names the leaf and its field.
        """
        ...

    def find_violations(self, session: Session) -> Collection[str]:
        """Check what is stored beside the session; return one sentence for each violation."""
        ...

    def estimate_tokens(self, session: Session) -> int:
        """Return the estimated tokens of the session's next request; 0 if they are not known."""
        ...

    def refresh_background(self, session: Session) -> None:
        """Bring up to date what is sent beside the summary, before a request is built.

        It must be cheap, because every request asks; it changes the context only where it must.
        """
        ...

    def plan_recall(self, session: Session) -> RecallPlan | None:
        """Return how much a new turn brings back from before the boundary; None for nothing.

        It must be cheap, because every turn of a session with a boundary asks.
        """
        ...

    def compact_session(
        self, session: Session, *, instructions: str = ""
    ) -> CompactionReport | None:
        """Compact the session now, and return how that ended; None if nothing can compact it.

        `instructions` say what the summary should pay attention to.
        """
        ...

    def measure_load(self) -> CompactionLoad | None:
        """Return the work that waits and runs on all machines; None if there is no queue."""
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

    def learn_window(self, model: AiModel, request: Request, tokens: int) -> None:
        """Learn that a model takes no more than so many tokens, after this request has passed."""
        ...

    def forget_window(self, model: AiModel) -> None:
        """Forget what `learn_window` has learned: the next longer request tells anew."""
        ...

    def estimate_request(self, model: AiModel, request: Request) -> int:
        """Return the estimated tokens of a request that belongs to no session, all of it."""
        ...

    def learn_token_count(self, model: AiModel, request: Request, tokens: int) -> None:
        """Learn how many tokens the provider counted in a request that belongs to no session."""
        ...

    def list_policies(self) -> Collection[str]:
        """Return the names of the compaction policies to offer, in the order of a menu."""
        ...

    def accepts_policy(self, name: str) -> bool:
        """Return True if a session may name this compaction policy."""
        ...

    def choose_policy_name(self, *policy_names: str) -> str:
        """Return the first usable of these names, and the project's policy if there is none."""
        ...

    def is_known_text(self, text: str, *, original: str = "") -> bool:
        """Return True if a policy puts this into requests, in the place of the original or alone.

        An import may bring no other words there, because nobody would see them.
        """
        ...

    def validate_threshold_override(self, threshold: float, *policy_names: str) -> None:
        """Check a session's own threshold, a share of the context window from 0 to 1.

        The policy is the first of `policy_names` that is not empty. Raises Django's
        ValidationError, which names the field, if the policy cannot work with this threshold.
        """
        ...

    def truncate_tool_output(self, session: Session, tool_name: str, text: str) -> TruncatedOutput:
        """Return the part of a tool's output that is stored in its message. Never raises.

        This one may be called inside a transaction, so it must not wait for anything.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class PlainTruncation:
    """The beginning of a tool's output, up to the default limit in characters."""

    content: str
    original_chars: int | None
    full_text: None = None


class NullCompactor:
    """The compactor of a project that has none: it changes no request and accepts every setting."""

    def before_request(self, session: Session, request: Request) -> FittedRequest:
        return FittedRequest(request=request, context_version=session.context_version)

    def preview_request(self, session: Session, request: Request) -> FittedRequest:
        return FittedRequest(request=request, context_version=session.context_version)

    def preview_switch(self, session: Session, *, provider: str, model: str) -> int:
        return 0

    def after_overflow(self, session: Session, request: Request, error: ContextOverflow) -> bool:
        return False

    def on_messages_deleted(self, session: Session, seqs: Collection[int]) -> None:
        pass

    def on_messages_superseded(self, session: Session, seqs: Collection[int]) -> None:
        pass

    def on_session_forked(self, source: Session, fork: Session, last_seq: int) -> None:
        pass

    def export_ledger(self, session: Session) -> Sequence[Mapping[str, Any]]:
        return ()

    def import_ledger(self, session: Session, lines: Sequence[Any]) -> None:
        pass

    def export_leaves(self, session: Session) -> Sequence[Mapping[str, Any]]:
        return ()

    def import_leaves(self, session: Session, leaves: Sequence[Any]) -> None:
        pass

    def find_violations(self, session: Session) -> Collection[str]:
        return ()

    def estimate_tokens(self, session: Session) -> int:
        return 0

    def refresh_background(self, session: Session) -> None:
        pass

    def plan_recall(self, session: Session) -> RecallPlan | None:
        return None

    def compact_session(
        self, session: Session, *, instructions: str = ""
    ) -> CompactionReport | None:
        return None

    def measure_load(self) -> CompactionLoad | None:
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

    def learn_window(self, model: AiModel, request: Request, tokens: int) -> None:
        pass

    def forget_window(self, model: AiModel) -> None:
        pass

    def estimate_request(self, model: AiModel, request: Request) -> int:
        texts = (request.system, *(tool.text for tool in request.tools))
        char_count = sum(len(text) for text in texts)
        return estimate_tokens(char_count + sum(map(_count_chars, request.messages)))

    def learn_token_count(self, model: AiModel, request: Request, tokens: int) -> None:
        pass

    def list_policies(self) -> Collection[str]:
        return ()

    def accepts_policy(self, name: str) -> bool:
        return True

    def choose_policy_name(self, *policy_names: str) -> str:
        return ""

    def is_known_text(self, text: str, *, original: str = "") -> bool:
        return text in ("", original)

    def validate_threshold_override(self, threshold: float, *policy_names: str) -> None:
        pass

    def truncate_tool_output(self, session: Session, tool_name: str, text: str) -> TruncatedOutput:
        content, original_chars = cut_tool_result(text)
        return PlainTruncation(content=content, original_chars=original_chars)


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

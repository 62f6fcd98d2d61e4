"""What the next request sends: the system prompt, the summary in its place, and the live messages."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from chatcore.context import live_messages as context_live_messages
from chatcore.context import summary_block
from chatcore.models import Session
from chatcore.providers.base import ChatMessage, Request, Tool
from chatcore.providers.errors import ContextOverflow
from models_registry.models import AiModel


@dataclass(frozen=True, kw_only=True)
class FittedRequest:
    """A guard's answer: the request to send. `context_version` is None when it holds less than the context (it was trimmed).

    `tokens`: about how many it has, where the guard was asked for a request without a session.
    """

    request: Request
    context_version: int | None
    notices: tuple[str, ...] = ()
    tokens: int | None = None


class Guard(Protocol):
    """What CHATCORE["CONTEXT_GUARD"] names: asked, synchronously and outside any transaction, where the sender needs an answer."""

    def before_request(self, session: Session, request: Request) -> FittedRequest:
        """Make the request fit. Raises ContextOverflow when it never can."""
        ...

    def after_overflow(self, session: Session, request: Request, error: ContextOverflow) -> bool:
        """Make room after the provider refused a request, given as it was built or sent; True: build it anew and send it once more."""
        ...

    def on_messages_deleted(self, session: Session, seqs: Collection[int]) -> None:
        """These messages are being deleted, in the open transaction: forget what was written of them."""
        ...

    def on_messages_superseded(self, session: Session, seqs: Collection[int]) -> None:
        """These messages are superseded or come back, in the open transaction: what was kept of them beside a summary holds no longer."""
        ...

    def on_session_forked(self, source: Session, fork: Session, last_seq: int) -> None:
        """A session was made of another's messages up to a seq, in the open transaction: give it what is kept beside the summary."""
        ...

    def estimate_tokens(self, session: Session) -> int:
        """About how many tokens the session's next request has."""
        ...

    def fit_request(
        self, model: AiModel, request: Request, *, overflow: ContextOverflow | None = None
    ) -> FittedRequest:
        """Make a request without a session fit its model; smaller still when it was `refused`. Raises ContextOverflow when it never can."""
        ...

    def learn_token_count(self, model: AiModel, request: Request, tokens: int) -> None:
        """A provider counted so many tokens of a request without a session, as it was sent."""
        ...


def load_guard() -> Guard | None:
    """The delegate that the settings name, if any."""
    path = settings.CHATCORE["CONTEXT_GUARD"]
    return import_string(path)() if path else None


def build_request(session: Session, *, tools: Sequence[Tool] = ()) -> Request:
    """The next request of a session, read from storage: cost grows with the live tail, not with the history.

    Refreshes the session's context fields, so that `session.context_version` is the version that the request was built on.
    """
    revision = context_live_messages.load_active_revision(session)
    params = dict(session.params)
    max_tokens = params.pop("max_tokens", None)
    block_text = summary_block.render_block(
        revision.summary, revision.background, revision.placement
    )
    summary_place = summary_block.get_place(revision.placement)
    system_summary = block_text if summary_place == "system_prefix" else ""
    return Request(
        model=session.model.name if session.model else "",
        system="\n\n".join(part for part in (session.system_prompt, system_summary) if part),
        system_summary=system_summary,
        preface=block_text if summary_place == "first_system" else "",
        messages=summary_block.insert_block(
            context_live_messages.pair_live_messages(
                context_live_messages.load_live_messages(session, revision), revision.boundary_seq
            ),
            block_text,
            revision.placement,
        ),
        tools=tools,
        max_tokens=max_tokens,
        params=params,
    )


def build_request_messages(session: Session) -> tuple[ChatMessage, ...]:
    """The messages that are sent, in the form their edits in force give them; without those still being written."""
    revision = context_live_messages.load_active_revision(session)
    return tuple(
        context_live_messages.pair_live_messages(
            context_live_messages.load_live_messages(session, revision), revision.boundary_seq
        )
    )

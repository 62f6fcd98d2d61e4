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
class Fit:
    """A guard's answer: the request to send. `context_version` is None when it holds less than the context (it was trimmed).

    `tokens`: about how many it has, where the guard was asked for a request without a session.
    """

    request: Request
    context_version: int | None
    notices: tuple[str, ...] = ()
    tokens: int | None = None


class Guard(Protocol):
    """What CHATCORE["CONTEXT_GUARD"] names: asked, synchronously and outside any transaction, where the sender needs an answer."""

    def before_request(self, session: Session, request: Request) -> Fit:
        """Make the request fit. Raises ContextOverflow when it never can."""
        ...

    def after_overflow(self, session: Session, request: Request, error: ContextOverflow) -> bool:
        """Make room after the provider refused a request, given as it was built or sent; True: build it anew and send it once more."""
        ...

    def forget(self, session: Session, seqs: Collection[int]) -> None:
        """These messages are being deleted, in the open transaction: forget what was written of them."""
        ...

    def uncovered(self, session: Session, seqs: Collection[int]) -> None:
        """These messages are superseded or come back, in the open transaction: what was kept of them beside a summary holds no longer."""
        ...

    def forked(self, source: Session, made: Session, last_seq: int) -> None:
        """A session was made of another's messages up to a seq, in the open transaction: give it what is kept beside the summary."""
        ...

    def size(self, session: Session) -> int:
        """About how many tokens the session's next request has."""
        ...

    def fit(
        self, model: AiModel, request: Request, *, refused: ContextOverflow | None = None
    ) -> Fit:
        """Make a request without a session fit its model; smaller still when it was `refused`. Raises ContextOverflow when it never can."""
        ...

    def learn(self, model: AiModel, request: Request, tokens: int) -> None:
        """A provider counted so many tokens of a request without a session, as it was sent."""
        ...


def guard() -> Guard | None:
    """The delegate that the settings name, if any."""
    path = settings.CHATCORE["CONTEXT_GUARD"]
    return import_string(path)() if path else None


def build_request(session: Session, *, tools: Sequence[Tool] = ()) -> Request:
    """The next request of a session, read from storage: cost grows with the live tail, not with the history.

    Refreshes the session's context fields, so that `session.context_version` is the version that the request was built on.
    """
    now = context_live_messages.in_force(session)
    params = dict(session.params)
    max_tokens = params.pop("max_tokens", None)
    said = summary_block.block(now.summary, now.background, now.placement)
    place = summary_block.place_of(now.placement)
    standing = said if place == "system_prefix" else ""
    return Request(
        model=session.model.name if session.model else "",
        system="\n\n".join(part for part in (session.system_prompt, standing) if part),
        standing=standing,
        preface=said if place == "first_system" else "",
        messages=summary_block.among(
            context_live_messages.paired(
                context_live_messages.read(session, now), now.boundary_seq
            ),
            said,
            now.placement,
        ),
        tools=tools,
        max_tokens=max_tokens,
        params=params,
    )


def live_messages(session: Session) -> tuple[ChatMessage, ...]:
    """The messages that are sent, in the form their edits in force give them; without those still being written."""
    now = context_live_messages.in_force(session)
    return tuple(
        context_live_messages.paired(context_live_messages.read(session, now), now.boundary_seq)
    )

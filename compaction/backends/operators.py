"""Define what a host tells about its sessions for those who run it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.db.models import QuerySet


@dataclass(frozen=True)
class Refusal:
    """Why the host pays for nothing more: a sentence for people, and the seconds to wait."""

    text: str
    retry_after: float


@dataclass(frozen=True, kw_only=True)
class SessionLabel:
    """How a session is named to operators. The title is its number where they may not see it."""

    title: str
    owner: str
    owner_id: Any
    chat_url: str  # of the page on which its owner talks
    currency: str


@dataclass(frozen=True, kw_only=True)
class TurnSize:
    """The tokens of one answer as its provider counted them: what was sent, and what came."""

    seq: int
    at: datetime
    sent_tokens: int
    cached_tokens: int
    output_tokens: int


@dataclass(frozen=True, kw_only=True)
class ContextStep:
    """One version of what the model sees: when, by whom and from what it was made."""

    version: int
    at: datetime
    source: str
    summary: str
    boundary_seq: int | None
    restores: int | None
    run: str
    actor: str  # empty: nobody, it came by itself
    edits: int  # messages that are sent in another form from this version on


class OperatorSource(Protocol):
    """What operators look at, and what they have decided: holds and budgets."""

    def name_session(self, session_id: UUID) -> SessionLabel | None:
        """Return how the session is named; None if it is deleted."""
        ...

    def load_turn_sizes(
        self, session_id: UUID, *, before_seq: int | None, limit: int
    ) -> Sequence[TurnSize]:
        """Return the newest answers before a message, the oldest of them first."""
        ...

    def load_context_steps(
        self, session_id: UUID, *, before: datetime | None, limit: int
    ) -> Sequence[ContextStep]:
        """Return the newest versions before a time, the newest first."""
        ...

    def note_act(self, act: str, session_id: UUID, *, detail: str = "") -> None:
        """Write down who does this with the session now, where the host keeps a log of acts."""
        ...

    def reword_summary(self, session_id: UUID, summary: str) -> int:
        """Replace the text of the summary, and return the new version of the context.

        Joins the open transaction. Raises ObjectDoesNotExist if the session is deleted.
        """
        ...

    def list_held_session_ids(self) -> QuerySet[Any, UUID]:
        """Return the ids of sessions of which nothing may be deleted now, as a subquery."""
        ...

    def may_delete(self) -> bool:
        """Return whether the clock can be believed, by which old records are deleted."""
        ...

    def find_spent_budget(self, session_id: UUID) -> Refusal | None:
        """Return why nothing more may be spent in a session by hand; None if it may."""
        ...


class NoOperators:
    """For a host without holds, budgets and sizes of its own: sessions are named by number."""

    def name_session(self, session_id: UUID) -> SessionLabel | None:
        """Return the session's number as its name."""
        return SessionLabel(
            title=str(session_id), owner="", owner_id=None, chat_url="", currency=""
        )

    def load_turn_sizes(
        self, session_id: UUID, *, before_seq: int | None, limit: int
    ) -> Sequence[TurnSize]:
        """Return nothing."""
        return ()

    def load_context_steps(
        self, session_id: UUID, *, before: datetime | None, limit: int
    ) -> Sequence[ContextStep]:
        """Return nothing."""
        return ()

    def list_held_session_ids(self) -> QuerySet[Any, Any]:
        """Return no session."""
        model = apps.get_model(settings.COMPACTION["SESSION_MODEL"])
        return model._default_manager.none().values_list("pk", flat=True)

    def may_delete(self) -> bool:
        """Return True."""
        return True

    def find_spent_budget(self, session_id: UUID) -> Refusal | None:
        """Return None."""
        return None

    def note_act(self, act: str, session_id: UUID, *, detail: str = "") -> None:
        """Do nothing."""

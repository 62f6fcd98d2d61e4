"""Read what operators look at: how a session is named, its sizes and its versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Count
from django.db.models.functions import Left
from django.urls import reverse

from chatcore.accounts import audit
from chatcore.models import ContextEdit, ContextRevision, Message, Session

MAX_SUMMARY_CHARS = 200_000  # of a version that is shown


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


def name_session(session_id: UUID) -> SessionLabel | None:
    """Return the title, which stays hidden from those who may not see contents."""
    session = Session.all_objects.select_related("owner").filter(pk=session_id).first()
    if session is None:
        return None
    return SessionLabel(
        title=str(session),
        owner=session.owner.get_username(),
        owner_id=session.owner_id,
        chat_url=reverse("chat", args=[session.pk]),
        currency=settings.CHATCORE["CURRENCY"],
    )


def load_turn_sizes(session_id: UUID, *, before_seq: int | None, limit: int) -> Sequence[TurnSize]:
    """Return the newest answers that a provider counted, superseded ones too."""
    answers = Message.objects.filter(
        session=session_id, role=Message.Role.ASSISTANT, token_count_input__isnull=False
    )
    if before_seq is not None:
        answers = answers.filter(seq__lt=before_seq)
    rows = answers.order_by("-seq").values_list(
        "seq",
        "created_at",
        "token_count_input",
        "token_count_cache_read",
        "token_count_output",
    )
    return [
        TurnSize(
            seq=seq,
            at=at,
            sent_tokens=sent_tokens or 0,
            cached_tokens=cached_tokens or 0,
            output_tokens=output_tokens or 0,
        )
        for seq, at, sent_tokens, cached_tokens, output_tokens in reversed(rows[:limit])
    ]


def load_context_steps(
    session_id: UUID, *, before: datetime | None, limit: int
) -> Sequence[ContextStep]:
    """Return the newest revisions, with the names of those who made them."""
    found_revisions = ContextRevision.objects.filter(session=session_id)
    if before is not None:
        found_revisions = found_revisions.filter(created_at__lt=before)
    rows = list(
        found_revisions.annotate(text=Left("summary", MAX_SUMMARY_CHARS))
        .defer("summary", "background", "kept_seqs")
        .order_by("-version")[:limit]
    )
    users = get_user_model()._default_manager.in_bulk({row.actor_id for row in rows} - {None})
    edits = ContextEdit.objects.filter(
        session=session_id, from_version__in=[row.version for row in rows]
    )
    edit_counts = dict(edits.order_by().values_list("from_version").annotate(count=Count("pk")))
    return [
        ContextStep(
            version=row.version,
            at=row.created_at,
            source=row.source,
            summary=getattr(row, "text", None) or "",
            boundary_seq=row.boundary_seq,
            restores=row.restores,
            run=row.run,
            actor=_name_actor(row.actor_id, users),
            edits=edit_counts.get(row.version, 0),
        )
        for row in rows
    ]


def note_act(act: str, session_id: UUID, *, detail: str = "") -> None:
    """Add an entry about the session to the audit log."""
    audit.record(act, object_type="chatcore.session", object_id=session_id, detail=detail)


def _name_actor(actor_id: int | None, users: Mapping[object, object]) -> str:
    if actor_id is None:
        return ""
    user = users.get(actor_id)
    return str(user) if user else f"user {actor_id}, erased"

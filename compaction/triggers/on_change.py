"""When messages are deleted or superseded: what runs wrote of them holds no longer, and what was deleted is forgotten altogether."""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from compaction.models import OPEN, CompactionRun
from compaction.summaries import state
from compaction.triggers import after_response

GONE = "[forgotten: a message it was written from was deleted]"


def forget(session_id: UUID, seqs: Collection[int]) -> None:
    """Blank the summaries, edits and state of every run that covered one of these messages; the session's row is locked.

    Structured state and memory lose what those runs made of it. A run that is being worked on finds its context changed when it wants to
    install. Where the context is too large again, a run is asked for.
    """
    touched = _covering(session_id, min(seqs))
    if (
        touched.filter(status=CompactionRun.Status.APPLIED, state_after={})
        .exclude(summary_after=GONE)
        .exists()
    ):
        _go_back(session_id, min(seqs))
    uncovered(session_id, seqs)
    touched.filter(summary_before__isnull=False).update(summary_before=GONE)
    touched.filter(summary_after__isnull=False).update(summary_after=GONE)
    touched.update(edits=[], state_after={})
    transaction.on_commit(
        lambda: after_response.measure_and_ask(session_id=session_id), robust=True
    )


def uncovered(session_id: UUID, seqs: Collection[int]) -> None:
    """These messages are sent no longer: structured state and memory lose what was made of them. The session's row is locked."""
    if seqs:
        state.untell(session_id, _noted(session_id, min(seqs)))


def forked(session_id: UUID, made_id: UUID, *, last_seq: int) -> None:
    """A session was made of the messages up to this one: it gets the state and the memory, without what was made of later ones."""
    state.copy(session_id, to=made_id, untold=_noted(session_id, last_seq + 1))


def _go_back(session_id: UUID, first: int) -> None:
    """Where a run did not note what it made of the state: to what the newest run left that does not cover the message."""
    sound = CompactionRun.objects.filter(
        session_id=session_id, status=CompactionRun.Status.APPLIED, boundary_after__lte=first
    )
    then = (
        sound.exclude(state_after={})
        .order_by("-created_at")
        .values_list("state_after", flat=True)
        .first()
    )
    state.write(session_id, state.restored(then or {}))


def _noted(session_id: UUID, first: int) -> QuerySet[CompactionRun]:
    applied = _covering(session_id, first).filter(status=CompactionRun.Status.APPLIED)
    return applied.exclude(state_after={}).order_by("-version_after")


def _covering(session_id: UUID, first: int) -> QuerySet[CompactionRun]:
    """The runs that ended whose summary or edits tell of a message from this one on."""
    ended = CompactionRun.objects.filter(session_id=session_id).exclude(status__in=OPEN)
    return ended.filter(Q(boundary_after__gt=first) | Q(boundary_before__gt=first) | ~Q(edits=[]))

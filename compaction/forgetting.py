"""When messages are deleted: what runs wrote of them is forgotten too, and where the context is too large again, a run is asked for."""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from compaction import receivers, working_state
from compaction.models import OPEN, CompactionRun

GONE = "[forgotten: a message it was written from was deleted]"


def forget(session_id: UUID, seqs: Collection[int]) -> None:
    """Blank the summaries, edits and state of every run that covered one of these messages; the session's row is locked.

    The structured state and the memory go back to those of the newest run that did not. A run that is being worked on finds its
    context changed when it wants to install.
    """
    first = min(seqs)
    ended = CompactionRun.objects.filter(session_id=session_id).exclude(status__in=OPEN)
    touched = Q(boundary_after__gt=first) | Q(boundary_before__gt=first) | ~Q(edits=[])
    ended.filter(touched, summary_before__isnull=False).update(summary_before=GONE)
    ended.filter(touched, summary_after__isnull=False).update(summary_after=GONE)
    ended.filter(touched).update(edits=[], state_after={})
    _go_back(session_id, first)
    transaction.on_commit(lambda: receivers.measure_and_ask(session_id=session_id), robust=True)


def _go_back(session_id: UUID, first: int) -> None:
    """State and memory as they were after the newest run that did not cover the message."""
    sound = CompactionRun.objects.filter(session_id=session_id, status=CompactionRun.Status.APPLIED, boundary_after__lte=first)
    then = sound.exclude(state_after={}).order_by("-created_at").values_list("state_after", flat=True).first()
    working_state.write(session_id, working_state.restored(then or {}))

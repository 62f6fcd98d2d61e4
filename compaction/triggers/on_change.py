"""When messages are deleted or superseded: what runs wrote of them holds no longer, and what was deleted is forgotten altogether."""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from compaction.models import OPEN_STATUSES, CompactionRun
from compaction.summaries import state
from compaction.triggers import after_response

FORGOTTEN_TEXT = "[forgotten: a message it was written from was deleted]"


def forget_messages(session_id: UUID, seqs: Collection[int]) -> None:
    """Blank the summaries, edits and state of every run that covered one of these messages; the session's row is locked.

    Structured state and memory lose what those runs made of it. A run that is being worked on finds its context changed when it wants to
    install. Where the context is too large again, a run is asked for.
    """
    covering_runs = _select_covering_runs(session_id, min(seqs))
    if (
        covering_runs.filter(status=CompactionRun.Status.APPLIED, state_after={})
        .exclude(summary_after=FORGOTTEN_TEXT)
        .exists()
    ):
        _restore_earlier_state(session_id, min(seqs))
    revert_derived_state(session_id, seqs)
    covering_runs.filter(summary_before__isnull=False).update(summary_before=FORGOTTEN_TEXT)
    covering_runs.filter(summary_after__isnull=False).update(summary_after=FORGOTTEN_TEXT)
    covering_runs.update(edits=[], state_after={})
    transaction.on_commit(
        lambda: after_response.measure_and_request_run(session_id=session_id), robust=True
    )


def revert_derived_state(session_id: UUID, seqs: Collection[int]) -> None:
    """These messages are sent no longer: structured state and memory lose what was made of them. The session's row is locked."""
    if seqs:
        state.revert_runs(session_id, _select_stateful_runs(session_id, min(seqs)))


def copy_state_to_fork(session_id: UUID, fork_id: UUID, *, last_seq: int) -> None:
    """A session was made of the messages up to this one: it gets the state and the memory, without what was made of later ones."""
    state.copy_structured_state(
        session_id,
        target_id=fork_id,
        runs_to_revert=_select_stateful_runs(session_id, last_seq + 1),
    )


def _restore_earlier_state(session_id: UUID, first_seq: int) -> None:
    """Where a run did not note what it made of the state: to what the newest run left that does not cover the message."""
    earlier_runs = CompactionRun.objects.filter(
        session_id=session_id, status=CompactionRun.Status.APPLIED, boundary_after__lte=first_seq
    )
    state_after = (
        earlier_runs.exclude(state_after={})
        .order_by("-created_at")
        .values_list("state_after", flat=True)
        .first()
    )
    state.store_structured_state(session_id, state.parse_structured_state(state_after or {}))


def _select_stateful_runs(session_id: UUID, first_seq: int) -> QuerySet[CompactionRun]:
    applied_runs = _select_covering_runs(session_id, first_seq).filter(
        status=CompactionRun.Status.APPLIED
    )
    return applied_runs.exclude(state_after={}).order_by("-version_after")


def _select_covering_runs(session_id: UUID, first_seq: int) -> QuerySet[CompactionRun]:
    """The runs that ended whose summary or edits tell of a message from this one on."""
    closed_runs = CompactionRun.objects.filter(session_id=session_id).exclude(
        status__in=OPEN_STATUSES
    )
    return closed_runs.filter(
        Q(boundary_after__gt=first_seq) | Q(boundary_before__gt=first_seq) | ~Q(edits=[])
    )

"""Forget or revert what runs wrote from messages that are deleted, superseded or forked."""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from chatcore.models import Session
from compaction.models import FORGOTTEN_TEXT, OPEN_STATUSES, CompactionRun, ModelCall
from compaction.runs import after_response
from compaction.sessions.memory_app import get_memory
from compaction.summaries import state

# In place of the state of a run. A run without any state is of an old version, which stored none.
FORGOTTEN_STATE = {"forgotten": True}


def forget_messages(session: Session, seqs: Collection[int]) -> None:
    """Blank the edits and the state of every run that covered one of these messages.

    The summaries are those of revisions, which are blanked already.

    Structured state and memory lose what these runs added to them. Afterwards the session is
    measured, because it may be too large again. The caller holds the lock of the session's row, so
    no run can install its outcome meanwhile; a run that is at work finds a changed context when it
    wants to install.
    """
    session_id, first_seq = session.pk, min(seqs)
    has_lost_text = get_memory().forget_messages(session_id, seqs)
    covering_runs = _select_covering_runs(session_id, first_seq)
    stateless_runs = covering_runs.filter(status=CompactionRun.Status.APPLIED, state_after={})
    if stateless_runs.exists():
        _restore_earlier_state(session_id, first_seq)
    revert_derived_state(session_id, seqs)
    # The text must be gone from the history of runs too, not only from what the model sees.
    covering_runs.update(edits=[], state_after=FORGOTTEN_STATE)
    _forget_words(session_id)
    if has_lost_text:
        state.publish_state(session_id)
    else:
        state.publish_memory(session_id)
    # Measuring opens transactions of its own and may request a run, so it waits for the commit. It
    # is robust: a deletion must not fail because the session could not be measured.
    transaction.on_commit(
        lambda: after_response.measure_and_request_run(session_id=session_id), robust=True
    )


def revert_derived_state(session_id: UUID, seqs: Collection[int]) -> None:
    """Remove from structured state and memory what was made from these messages.

    The caller holds the lock of the session's row.
    """
    if seqs:
        state.revert_runs(session_id, _select_stateful_runs(session_id, min(seqs)))


def supersede_messages(session: Session, seqs: Collection[int]) -> None:
    """Remove what was made from superseded messages, and bring back what others said.

    The caller holds the lock of the session's row.
    """
    if not seqs:
        return
    get_memory().withdraw_messages(session.pk, seqs)
    revert_derived_state(session.pk, seqs)
    # An earlier context may be in force now, with what was remembered then.
    state.publish_memory(session.pk)


def copy_state_to_fork(session: Session, source: Session, *, last_seq: int) -> None:
    """Copy structured state and memory to a fork, up to the message `last_seq`."""
    has_text = get_memory().copy_to_fork(source.pk, target_id=session.pk, last_seq=last_seq)
    state.copy_structured_state(
        source.pk,
        target_id=session.pk,
        runs_to_revert=_select_stateful_runs(source.pk, last_seq + 1),
    )
    if has_text:
        state.publish_state(session.pk)


def _forget_words(session_id: UUID) -> None:
    """Blank what may quote any message: a run's instructions, findings, calls, and why it failed.

    The instructions of an open run stay until it ends: it needs them.
    """
    runs = CompactionRun.objects.filter(session_id=session_id)
    runs.exclude(verification={}).update(verification={})
    # First the runs: whoever stores a call of an open one holds its row, and is waited for here.
    runs.filter(status__in=OPEN_STATUSES).update(keeps_words=False)
    ModelCall.objects.filter(run__session=session_id).update(request=None, answer=None, reason="")
    closed_runs = runs.exclude(status__in=OPEN_STATUSES)
    closed_runs.exclude(instructions="").update(instructions="")
    closed_runs.exclude(error="").update(error=FORGOTTEN_TEXT)
    closed_runs.exclude(reason="").update(reason=FORGOTTEN_TEXT)


def _restore_earlier_state(session_id: UUID, first_seq: int) -> None:
    """Go back to the state of the newest run that covers only earlier messages.

    This is for runs that stored no state of their own, so that their part cannot be taken out.
    """
    earlier_runs = CompactionRun.objects.filter(
        session_id=session_id, status=CompactionRun.Status.APPLIED, boundary_after__lte=first_seq
    )
    known_states = earlier_runs.exclude(state_after={}).exclude(state_after=FORGOTTEN_STATE)
    states = known_states.order_by("-created_at")
    newest_state = states.values_list("state_after", flat=True).first()
    state.store_structured_state(session_id, state.parse_structured_state(newest_state or {}))


def _select_stateful_runs(session_id: UUID, first_seq: int) -> QuerySet[CompactionRun]:
    """Select applied runs with a state that covered messages from `first_seq` on, newest first."""
    applied_runs = _select_covering_runs(session_id, first_seq).filter(
        status=CompactionRun.Status.APPLIED
    )
    known_states = applied_runs.exclude(state_after={}).exclude(state_after=FORGOTTEN_STATE)
    return known_states.order_by("-version_after")


def _select_covering_runs(session_id: UUID, first_seq: int) -> QuerySet[CompactionRun]:
    """Select the ended runs whose summary or edits were made from messages from `first_seq` on.

    Runs with edits are always selected, because an edit may quote any message.
    """
    closed_runs = CompactionRun.objects.filter(session_id=session_id).exclude(
        status__in=OPEN_STATUSES
    )
    return closed_runs.filter(
        Q(boundary_after__gt=first_seq) | Q(boundary_before__gt=first_seq) | ~Q(edits=[])
    )

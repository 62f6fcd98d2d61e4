"""Undo, redo and replace what was done to a context."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction

from chatcore.context import revisions
from chatcore.context.history import ContextHistory, load_history
from chatcore.sessions import changes
from compaction.models import CompactionRun
from compaction.sessions.facts import load_session_facts
from compaction.sessions.session_context import NoSuchSession
from compaction.sessions.transcripts import StaleTranscript
from compaction.summaries import state

Status = CompactionRun.Status


class NothingToReplace(Exception):
    """The session has no summary that a run could write anew."""


def find_base(session_id: UUID) -> tuple[int, int]:
    """Return the version to begin from, and the last message, to write the summary in force anew.

    Raises NothingToReplace.
    """
    facts = load_session_facts(session_id)
    base_version = load_history(session_id).base_version
    if facts is None or not facts.live.boundary_seq or base_version is None:
        raise NothingToReplace("The chat has no summary that could be written anew.")
    return base_version, facts.live.boundary_seq - 1


@contextmanager
def go_back_to_read(run: CompactionRun) -> Iterator[None]:
    """Show the context as it was before what the run replaces, for what is read meanwhile.

    Nothing of it is committed, so nobody else sees it, and no model may be called in it.
    """
    if run.from_version is None:
        yield
        return
    with transaction.atomic():
        _go_back(run)
        yield
        transaction.set_rollback(True)


def go_back_to_install(run: CompactionRun) -> None:
    """Take back what the run replaces, if anything, in the transaction that installs the run."""
    if run.from_version is not None:
        _go_back(run)


def _go_back(run: CompactionRun) -> None:
    # This locks the session's row; only then are runs locked (docs/concurrency.md).
    assert run.from_version is not None
    history = load_history(run.session_id)
    steps = set(history.list_path(history.current)) - set(history.list_path(run.from_version))
    revisions.rewind_context(run.session_id, to_version=run.from_version, run=str(run.pk))
    applied_runs = CompactionRun.objects.select_for_update().filter(
        session_id=run.session_id, status=Status.APPLIED, version_after__in=steps
    )
    replaced_runs = list(applied_runs.order_by("version_after"))
    CompactionRun.objects.filter(pk__in=[old_run.pk for old_run in replaced_runs]).update(
        status=Status.REWOUND
    )
    if replaced_runs:
        state.rewind_structured_state(replaced_runs[0])


class NothingToMove(Exception):
    """There is no step in this direction."""


def undo_step(session_id: UUID, *, base_version: int | None = None) -> None:
    """Go back to the step before the one in force: a summary, an edit of it, or a reset.

    Automatic runs then wait, as after every rewind. Raises NothingToMove, NoSuchSession, and
    StaleTranscript when the context is no longer at `base_version`.
    """
    history = load_history(session_id)
    if history.undo_version is None:
        raise NothingToMove("There is nothing to undo.")
    _move(session_id, history, history.undo_version, base_version)


def redo_step(session_id: UUID, *, base_version: int | None = None) -> None:
    """Go forward to the step that was undone last. Raises what `undo_step` raises."""
    history = load_history(session_id)
    if history.redo_version is None:
        raise NothingToMove("There is nothing to redo.")
    _move(session_id, history, history.redo_version, base_version)


def go_to_version(session_id: UUID, version: int) -> None:
    """Go back to an earlier version of the context, whatever made it; 0 is the whole history.

    Raises NothingToMove if that is the one in force or there is none, and NoSuchSession.
    """
    history = load_history(session_id)
    if version == history.current:
        raise NothingToMove("The model sees this version already.")
    _move(session_id, history, version, None)


def _move(
    session_id: UUID, history: ContextHistory, to_version: int, base_version: int | None
) -> None:
    with transaction.atomic():
        # This locks the session's row, and only then are runs locked (docs/concurrency.md).
        try:
            version = revisions.rewind_context(session_id, to_version=to_version).version
        except ObjectDoesNotExist:
            raise NoSuchSession(str(session_id)) from None
        if base_version not in (None, version - 1):
            raise StaleTranscript(f"The context is at version {version - 1}, not {base_version}.")
        _mark_runs(session_id, history, to_version)
        # The step has what is remembered as it was then; people may have changed it since.
        state.publish_memory(session_id)
        changes.announce_context_change(session_id, version)


def _mark_runs(session_id: UUID, history: ContextHistory, to_version: int) -> None:
    """Mark the runs that are in force from now on, and those that no longer are."""
    left_steps = set(history.list_path(history.current))
    new_steps = set(history.list_path(to_version))
    runs = CompactionRun.objects.select_for_update().filter(session_id=session_id)
    undone_runs = list(
        runs.filter(status=Status.APPLIED, version_after__in=left_steps - new_steps).order_by(
            "version_after"
        )
    )
    redone_runs = list(
        runs.filter(status=Status.REWOUND, version_after__in=new_steps).order_by("version_after")
    )
    _set_status(undone_runs, Status.REWOUND)
    _set_status(redone_runs, Status.APPLIED)
    if redone_runs and "before" in redone_runs[-1].state_after:
        after = state.parse_structured_state(redone_runs[-1].state_after)
        state.store_structured_state(session_id, after)
    elif undone_runs:
        state.rewind_structured_state(undone_runs[0])


def _set_status(runs: list[CompactionRun], status: str) -> None:
    CompactionRun.objects.filter(pk__in=[run.pk for run in runs]).update(status=status)

"""Undo, redo and replace what was done to a context."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.db.models import Q

from chatcore.context import revisions
from chatcore.context.history import load_history
from chatcore.models import ContextRevision
from chatcore.sessions import changes
from compaction.models import CompactionRun
from compaction.sessions.background import publish_what_is_remembered
from compaction.sessions.facts import load_session_facts
from compaction.sessions.session_context import NoSuchSession
from compaction.sessions.session_memory import list_memories

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

    Nothing of it is committed, so no other connection sees it, and no model may be called in it.
    """
    if run.from_version is None:
        yield
        return
    with transaction.atomic():
        go_back_to_install(run)
        yield
        transaction.set_rollback(True)


def go_back_to_install(run: CompactionRun) -> None:
    """Take back what the run replaces, if anything, in the transaction that installs the run."""
    if run.from_version is not None:
        _rewind_context(run.session_id, run.from_version, run=str(run.pk))


class NothingToMove(Exception):
    """There is no step in this direction."""


def undo_step(session_id: UUID, *, base_version: int | None = None) -> None:
    """Go back to the step before the one in force: a summary, an edit of it, or a reset.

    Automatic runs then wait, as after every rewind. Raises NothingToMove, NoSuchSession, and
    StaleContext when the context is no longer at `base_version`.
    """
    version = load_history(session_id).undo_version
    if version is None:
        raise NothingToMove("There is nothing to undo.")
    move_context(session_id, version, base_version=base_version)


def redo_step(session_id: UUID, *, base_version: int | None = None) -> None:
    """Go forward to the step that was undone last. Raises what `undo_step` raises."""
    version = load_history(session_id).redo_version
    if version is None:
        raise NothingToMove("There is nothing to redo.")
    move_context(session_id, version, base_version=base_version)


def go_to_version(session_id: UUID, version: int) -> None:
    """Go back to an earlier version of the context, whatever made it; 0 is the whole history.

    Raises NothingToMove if that is the one in force, and NoSuchSession if there is none.
    """
    if version == load_history(session_id).current:
        raise NothingToMove("The model sees this version already.")
    move_context(session_id, version)


def move_context(session_id: UUID, version: int, *, base_version: int | None = None) -> None:
    """Show the model what it saw under another version, and tell open pages.

    Raises NoSuchSession, and StaleContext when the context is no longer at `base_version`.
    """
    with transaction.atomic():
        revision = _rewind_context(session_id, version, base_version=base_version)
        changes.announce_context_change(session_id, revision.version)


def _rewind_context(
    session_id: UUID, version: int, *, base_version: int | None = None, run: str = ""
) -> ContextRevision:
    try:
        return revisions.rewind_context(
            session_id, to_version=version, base_version=base_version, run=run
        )
    except ObjectDoesNotExist:
        raise NoSuchSession(str(session_id)) from None


def follow_rewind(revision: ContextRevision) -> None:
    """Mark the runs that are in force no more, or again, and bring back what they remembered.

    The caller holds the lock of the session's row; runs are locked after it
    (docs/concurrency.md).
    """
    session_id = revision.session_id
    history = load_history(session_id)
    left_steps = set(history.list_path(revision.version - 1))
    new_steps = set(history.list_path(revision.version))
    is_left = Q(version_after__in=left_steps - new_steps)
    if new_steps <= left_steps:  # back, so nothing that came later is in force, read or not
        is_left |= Q(version_after__gt=revision.restores)
    runs = CompactionRun.objects.select_for_update().filter(session_id=session_id)
    runs = runs.order_by("version_after")
    undone_runs = list(runs.filter(is_left, status=Status.APPLIED))
    redone_runs = list(runs.filter(status=Status.REWOUND, version_after__in=new_steps))
    _set_status(undone_runs, Status.REWOUND)
    _set_status(redone_runs, Status.APPLIED)
    for memory in list_memories():
        memory.follow_rewind(session_id, undone_runs=undone_runs, redone_runs=redone_runs)
    if not revision.run:  # otherwise the run that goes on from there publishes its own
        # The step has what was remembered then; users may have changed it since.
        publish_what_is_remembered(session_id)


def _set_status(runs: list[CompactionRun], status: str) -> None:
    CompactionRun.objects.filter(pk__in=[run.pk for run in runs]).update(status=status)

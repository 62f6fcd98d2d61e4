"""Runs that write a summary anew: they begin from before it, and replace it only on success."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import transaction

from chatcore.context import revisions
from chatcore.context.history import load_history
from compaction.models import CompactionRun
from compaction.sessions.facts import load_session_facts
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

"""A session's structured state and memory: read, stored with what is installed, shown beside the summary, and brought back by a rewind."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from compaction.backends import registry as backend_registry
from compaction.core.budget import Budget
from compaction.core.state import SECTIONS, Working, fitted, without
from compaction.models import CompactionRun, WorkingState
from compaction.sizing import session_context

CHARS_A_TOKEN = 4
UNKNOWN_WINDOW_CHARS = 8_000  # of background, where the window is not known


def read(session_id: UUID) -> Working:
    """As it is stored; an empty one where nothing is."""
    row = (
        WorkingState.objects.filter(pk=session_id)
        .values("state", "memory", "memory_summary")
        .first()
    )
    return restored(row or {})


def write(session_id: UUID, working: Working) -> None:
    """Store it; no row is made for one that is empty. Joins the open transaction."""
    if working.empty:
        WorkingState.objects.filter(pk=session_id).update(**snapshot(working))
    else:
        WorkingState.objects.update_or_create(session_id=session_id, defaults=snapshot(working))


def snapshot(working: Working) -> dict[str, Any]:
    """As JSON holds it: only the sections that hold something."""
    return {
        "state": {name: list(items) for name in SECTIONS if (items := working.state.get(name))},
        "memory": list(working.memory),
        "memory_summary": working.memory_summary,
    }


def restored(value: Mapping[str, Any]) -> Working:
    """From a snapshot, or from nothing."""
    state = value.get("state") or {}
    return Working(
        state={name: tuple(state.get(name, ())) for name in SECTIONS},
        memory=tuple(value.get("memory") or ()),
        memory_summary=value.get("memory_summary") or "",
    )


def propose(run: CompactionRun, working: Working) -> None:
    """Leave with a run, in memory only, what its summarizer made of the state."""
    run.state_after = snapshot(working)


def install(run: CompactionRun) -> Working:
    """Store what the run proposes, where it proposes something, and note with the run how it was before. In the transaction of the end.

    A state that was changed meanwhile is safe: such a change makes a new version of the context, and this run's outcome stale.
    """
    before = read(run.session_id)
    working = restored(run.state_after) if run.state_after else before
    if working != before:
        write(run.session_id, working)
    run.state_after = {**snapshot(working), "before": snapshot(before)}
    return working


def take_back(run: CompactionRun) -> None:
    """The state as it was before a run, in the transaction of its rewind."""
    if "before" in run.state_after:
        write(run.session_id, restored(run.state_after["before"]))


def untell(session_id: UUID, runs: Iterable[CompactionRun]) -> None:
    """Take back what these runs, the newest first, told of messages that are sent no longer, in a transaction with the session's row."""
    told = read(session_id)
    _show(session_id, _untold(told, runs), told)


def copy(session_id: UUID, *, to: UUID, untold: Iterable[CompactionRun]) -> None:
    """Give another session the same state, without what these runs, the newest first, told; in a transaction with that session's row."""
    _show(to, _untold(read(session_id), untold), Working())


def _untold(working: Working, runs: Iterable[CompactionRun]) -> Working:
    for run in runs:
        if "before" in run.state_after:
            working = without(
                working, restored(run.state_after["before"]), restored(run.state_after)
            )
    return working


def _show(session_id: UUID, working: Working, before: Working) -> None:
    """Where there is no state, whatever reference text came with an import stays."""
    now = session_context.of(session_id)
    if now is not None and working != before:
        write(session_id, working)
    if now is not None and WorkingState.objects.filter(pk=session_id).exists():
        backend_registry.get().remind(session_id, background(working, now.budget))


def change(session_id: UUID, edit: Callable[[Working], Working]) -> Working:
    """Store what `edit` makes of the state; the next request shows it. Raises NoSuchSession and what `edit` raises, changing nothing."""
    now = session_context.of(session_id)
    if now is None:
        raise session_context.NoSuchSession(str(session_id))
    with transaction.atomic():
        backend_registry.get().announce(
            session_id, ("session.updated", {"fields": ["state"]})
        )  # first: it holds the session's row
        working = edit(read(session_id))
        write(session_id, working)
        backend_registry.get().remind(session_id, background(working, now.budget))
    return working


def background(working: Working, budget: Budget | None) -> str:
    """The reference text that goes with the summary; it takes no more of the window than a summary may."""
    return fitted(working, budget.summary * CHARS_A_TOKEN if budget else UNKNOWN_WINDOW_CHARS)

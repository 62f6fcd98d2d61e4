"""A session's structured state and memory: read, stored with what is installed, shown beside the summary, and brought back by a rewind."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from compaction.backends import registry as backend_registry
from compaction.core.budget import Budget
from compaction.core.state import SECTIONS, StructuredState, fit_state, undo_change
from compaction.models import CompactionRun, WorkingState
from compaction.sizing import session_context

CHARS_PER_TOKEN = 4
UNKNOWN_WINDOW_CHARS = 8_000  # of background, where the window is not known


def load_structured_state(session_id: UUID) -> StructuredState:
    """As it is stored; an empty one where nothing is."""
    row = (
        WorkingState.objects.filter(pk=session_id)
        .values("state", "memory", "memory_summary")
        .first()
    )
    return parse_structured_state(row or {})


def store_structured_state(session_id: UUID, structured_state: StructuredState) -> None:
    """Store it; no row is made for one that is empty. Joins the open transaction."""
    if structured_state.is_empty:
        WorkingState.objects.filter(pk=session_id).update(
            **serialize_structured_state(structured_state)
        )
    else:
        WorkingState.objects.update_or_create(
            session_id=session_id, defaults=serialize_structured_state(structured_state)
        )


def serialize_structured_state(structured_state: StructuredState) -> dict[str, Any]:
    """As JSON holds it: only the sections that hold something."""
    return {
        "state": {
            name: list(items) for name in SECTIONS if (items := structured_state.sections.get(name))
        },
        "memory": list(structured_state.memory),
        "memory_summary": structured_state.memory_summary,
    }


def parse_structured_state(value: Mapping[str, Any]) -> StructuredState:
    """From a snapshot, or from nothing."""
    sections = value.get("state") or {}
    return StructuredState(
        sections={name: tuple(sections.get(name, ())) for name in SECTIONS},
        memory=tuple(value.get("memory") or ()),
        memory_summary=value.get("memory_summary") or "",
    )


def propose_structured_state(run: CompactionRun, structured_state: StructuredState) -> None:
    """Leave with a run, in memory only, what its summarizer made of the state."""
    run.state_after = serialize_structured_state(structured_state)


def install_structured_state(run: CompactionRun) -> StructuredState:
    """Store what the run proposes, where it proposes something, and note with the run how it was before. In the transaction of the end.

    A state that was changed meanwhile is safe: such a change makes a new version of the context, and this run's outcome stale.
    """
    previous_state = load_structured_state(run.session_id)
    structured_state = (
        parse_structured_state(run.state_after) if run.state_after else previous_state
    )
    if structured_state != previous_state:
        store_structured_state(run.session_id, structured_state)
    run.state_after = {
        **serialize_structured_state(structured_state),
        "before": serialize_structured_state(previous_state),
    }
    return structured_state


def rewind_structured_state(run: CompactionRun) -> None:
    """The state as it was before a run, in the transaction of its rewind."""
    if "before" in run.state_after:
        store_structured_state(run.session_id, parse_structured_state(run.state_after["before"]))


def revert_runs(session_id: UUID, runs: Iterable[CompactionRun]) -> None:
    """Take back what these runs, the newest first, told of messages that are sent no longer, in a transaction with the session's row."""
    structured_state = load_structured_state(session_id)
    _publish_state(session_id, _remove_runs(structured_state, runs), structured_state)


def copy_structured_state(
    session_id: UUID, *, target_id: UUID, runs_to_revert: Iterable[CompactionRun]
) -> None:
    """Give another session the same state, without what these runs, the newest first, told; in a transaction with that session's row."""
    _publish_state(
        target_id,
        _remove_runs(load_structured_state(session_id), runs_to_revert),
        StructuredState(),
    )


def _remove_runs(
    structured_state: StructuredState, runs: Iterable[CompactionRun]
) -> StructuredState:
    for run in runs:
        if "before" in run.state_after:
            structured_state = undo_change(
                structured_state,
                parse_structured_state(run.state_after["before"]),
                parse_structured_state(run.state_after),
            )
    return structured_state


def _publish_state(
    session_id: UUID, structured_state: StructuredState, previous_state: StructuredState
) -> None:
    """Where there is no state, whatever reference text came with an import stays."""
    context = session_context.load_session_context(session_id)
    if context is not None and structured_state != previous_state:
        store_structured_state(session_id, structured_state)
    if context is not None and WorkingState.objects.filter(pk=session_id).exists():
        backend_registry.get_backend().set_background(
            session_id, render_background(structured_state, context.budget)
        )


def change_structured_state(
    session_id: UUID, edit: Callable[[StructuredState], StructuredState]
) -> StructuredState:
    """Store what `edit` makes of the state; the next request shows it. Raises NoSuchSession and what `edit` raises, changing nothing."""
    context = session_context.load_session_context(session_id)
    if context is None:
        raise session_context.NoSuchSession(str(session_id))
    with transaction.atomic():
        backend_registry.get_backend().announce_events(
            session_id, ("session.updated", {"fields": ["state"]})
        )  # first: it holds the session's row
        structured_state = edit(load_structured_state(session_id))
        store_structured_state(session_id, structured_state)
        backend_registry.get_backend().set_background(
            session_id, render_background(structured_state, context.budget)
        )
    return structured_state


def render_background(structured_state: StructuredState, budget: Budget | None) -> str:
    """The reference text that goes with the summary; it takes no more of the window than a summary may."""
    return fit_state(
        structured_state,
        budget.summary_tokens * CHARS_PER_TOKEN if budget else UNKNOWN_WINDOW_CHARS,
    )

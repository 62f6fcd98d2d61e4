"""Store, revert and render the structured state and the memory of a session.

Everything here that writes is called in a transaction that holds the session's row.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from compaction.core.budget import Budget
from compaction.models import CompactionRun
from compaction.sessions.background import change_and_publish
from compaction.systems.lota.models import WorkingState
from compaction.systems.lota.settings import MemoryKnobs
from compaction.systems.lota.state import SECTIONS, StructuredState, fit_state, undo_change

UNKNOWN_WINDOW_CHARS = 8_000  # of the state, where the window is not known
MAX_MEMORY_ENTRIES = 200  # entries that may wait to be folded

StateRecord = dict[str, Any]


def render_stored_state(structured_state: StructuredState, budget: Budget | None) -> str:
    """Return the state as it is sent, cut to the room of a summary."""
    max_chars = UNKNOWN_WINDOW_CHARS
    if budget:
        max_chars = budget.summary_tokens * CHARS_PER_TOKEN_ESTIMATE
    return fit_state(structured_state, max_chars)


def has_state(session_id: UUID) -> bool:
    """Return True if the session has ever had a state."""
    return WorkingState.objects.filter(pk=session_id).exists()


def load_structured_state(session_id: UUID) -> StructuredState:
    """Return the stored state of a session, or an empty one."""
    row = (
        WorkingState.objects.filter(pk=session_id)
        .values("state", "memory", "memory_summary")
        .first()
    )
    return parse_structured_state(row or {})


def store_structured_state(session_id: UUID, structured_state: StructuredState) -> None:
    """Store a state in the open transaction. No row is inserted for an empty one."""
    fields = serialize_structured_state(structured_state)
    if structured_state.is_empty:
        WorkingState.objects.filter(pk=session_id).update(**fields)
    else:
        WorkingState.objects.update_or_create(session_id=session_id, defaults=fields)


def serialize_structured_state(structured_state: StructuredState) -> StateRecord:
    """Return the state as JSON holds it, without empty sections."""
    sections = structured_state.sections
    return {
        "state": {name: list(sections[name]) for name in SECTIONS if sections.get(name)},
        "memory": list(structured_state.memory),
        "memory_summary": structured_state.memory_summary,
    }


def parse_structured_state(value: Mapping[str, Any]) -> StructuredState:
    """Return the state that a JSON object or a row holds; an empty one for an empty object."""
    sections = value.get("state") or {}
    return StructuredState(
        sections={name: tuple(sections.get(name, ())) for name in SECTIONS},
        memory=tuple(value.get("memory") or ()),
        memory_summary=value.get("memory_summary") or "",
    )


def build_state_record(
    structured_state: StructuredState, previous_state: StructuredState
) -> StateRecord:
    """Return what a run records in `state_after`: the state after it, and the one before it."""
    return {
        **serialize_structured_state(structured_state),
        "before": serialize_structured_state(previous_state),
    }


def rewind_structured_state(runs: Iterable[CompactionRun]) -> None:
    """Store the state as it was before these runs, the oldest first, while they are rewound."""
    for run in runs:
        if "before" in run.state_after:
            earlier_state = parse_structured_state(run.state_after["before"])
            store_structured_state(run.session_id, earlier_state)
            return


def revert_runs(session_id: UUID, runs: Iterable[CompactionRun]) -> None:
    """Remove what these runs, the newest first, added to the state of their session.

    For messages that are no longer sent: the state must not repeat what they said.
    """
    structured_state = load_structured_state(session_id)
    reverted_state = _remove_runs(structured_state, runs)
    if reverted_state != structured_state:
        store_structured_state(session_id, reverted_state)


def copy_structured_state(
    session_id: UUID, *, target_id: UUID, runs_to_revert: Iterable[CompactionRun]
) -> None:
    """Give another session the same state, without what these runs, the newest first, added."""
    structured_state = _remove_runs(load_structured_state(session_id), runs_to_revert)
    if not structured_state.is_empty:
        store_structured_state(target_id, structured_state)


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


def change_structured_state(
    session_id: UUID, edit: Callable[[StructuredState], StructuredState]
) -> StructuredState:
    """Store the state that `edit` returns, and show it from the next request on.

    Raises NoSuchSession and what `edit` raises; then nothing has changed.
    """

    def store_state() -> StructuredState:
        structured_state = edit(load_structured_state(session_id))
        store_structured_state(session_id, structured_state)
        return structured_state

    return change_and_publish(session_id, store_state)


def is_full(structured_state: StructuredState, knobs: MemoryKnobs) -> bool:
    """Return True if the memory has so many entries that the oldest are to be folded."""
    return bool(knobs.entries and knobs.fold) and len(structured_state.memory) >= knobs.entries

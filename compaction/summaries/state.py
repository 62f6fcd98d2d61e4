"""Store, fold, revert and show the structured state and the memory of a session.

Everything here that writes is called in a transaction that holds the session's row.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

from django.db import transaction

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.models import Session
from chatcore.sessions import changes
from compaction.core.budget import Budget
from compaction.core.knobs import MemoryKnobs
from compaction.core.stages.base import SummaryFailed
from compaction.core.state import SECTIONS, StructuredState, fit_state, undo_change
from compaction.models import CompactionRun, WorkingState
from compaction.sessions.memory_app import get_memory
from compaction.sessions.plans import render_plan
from compaction.sessions.session_context import (
    NoSuchSession,
    SessionContext,
    load_session_context,
)
from compaction.sessions.transcripts import set_background
from compaction.summaries.call_log import ProviderBusy

UNKNOWN_WINDOW_CHARS = 8_000  # of the state, where the window is not known

StateRecord = dict[str, Any]
ResultT = TypeVar("ResultT")

logger = logging.getLogger(__name__)

MAX_MEMORY_ENTRIES = 200  # entries that may wait to be folded

MemoryBlender = Callable[[str, Iterable[str]], str]


def publish_background(session_id: UUID, structured_state: StructuredState) -> None:
    """Send this state, and what is remembered, from the next request on.

    Called in a transaction that holds the session's row. Does nothing if the session is deleted.
    """
    context = load_session_context(session_id)
    if context is None:
        return
    memory_text = get_memory().render_stored_text(context)
    plan_text = render_plan(context, context.facts.live.boundary_seq)
    background = render_background(memory_text, plan_text, structured_state, context.budget)
    set_background(session_id, background)


def render_background(
    memory_text: str, plan_text: str, structured_state: StructuredState, budget: Budget | None
) -> str:
    """Return what is remembered, a plan, and the state cut to the room of a summary."""
    max_chars = UNKNOWN_WINDOW_CHARS
    if budget:
        max_chars = budget.summary_tokens * CHARS_PER_TOKEN_ESTIMATE
    texts = (memory_text, plan_text, fit_state(structured_state, max_chars))
    return "\n\n".join(text for text in texts if text)


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
    _publish_state(session_id, _remove_runs(structured_state, runs), structured_state)


def copy_structured_state(
    session_id: UUID, *, target_id: UUID, runs_to_revert: Iterable[CompactionRun]
) -> None:
    """Give another session the same state, without what these runs, the newest first, added."""
    structured_state = _remove_runs(load_structured_state(session_id), runs_to_revert)
    _publish_state(target_id, structured_state, StructuredState())


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
    if structured_state != previous_state:
        store_structured_state(session_id, structured_state)
    # A session without a state may have reference text that came with an import; that stays.
    if WorkingState.objects.filter(pk=session_id).exists():
        publish_background(session_id, structured_state)


def publish_state(session_id: UUID) -> None:
    """Show the state, and what is remembered, as they are stored from the next request on.

    Called in a transaction that holds the session's row.
    """
    publish_background(session_id, load_structured_state(session_id))


def publish_memory(session_id: UUID) -> None:
    """Do the same where the session has anything to remember."""
    if get_memory().has_text(session_id):
        publish_state(session_id)


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


def change_and_publish(session_id: UUID, change: Callable[[], ResultT]) -> ResultT:
    """Make a change of the state, or of what is remembered, and show it from the next request on.

    Raises NoSuchSession and what `change` raises; then nothing has changed.
    """
    with transaction.atomic():
        # The announcement comes first because it locks the session's row, so that of two changes
        # at the same time the second reads what the first has stored.
        try:
            changes.record_session_change(session_id, fields=["state"], is_user_act=False)
        except Session.DoesNotExist:
            raise NoSuchSession(str(session_id)) from None
        result = change()
        publish_state(session_id)
    return result


def is_full(structured_state: StructuredState, knobs: MemoryKnobs) -> bool:
    """Return True if the memory has so many entries that the oldest are to be folded."""
    return bool(knobs.entries and knobs.fold) and len(structured_state.memory) >= knobs.entries


def is_session_memory_full(context: SessionContext) -> bool:
    """Return True if the session's memory is full. Without a memory this takes no query."""
    knobs = context.policy.memory
    if not knobs.entries:
        return False
    return is_full(load_structured_state(context.facts.session_id), knobs)


def try_to_fold(
    structured_state: StructuredState, knobs: MemoryKnobs, blend: MemoryBlender
) -> StructuredState:
    """Return the state with a full memory folded; unchanged where that fails.

    The next run tries again.
    """
    try:
        return fold_oldest_entries(structured_state, knobs, blend)
    except (SummaryFailed, ProviderBusy) as failure:
        logger.warning("the memory was not folded: %s", failure)
        return structured_state


def fold_oldest_entries(
    structured_state: StructuredState, knobs: MemoryKnobs, blend: MemoryBlender
) -> StructuredState:
    """Return the state with the oldest `fold` entries of a full memory folded into its summary.

    (docs/origins.md, "Lota, Memory Block Compaction".) `blend` writes the new summary from the
    earlier one and the entries, or raises SummaryFailed.
    """
    if not is_full(structured_state, knobs):
        return structured_state
    summary = blend(structured_state.memory_summary, structured_state.memory[: knobs.fold])
    return replace(
        structured_state, memory=structured_state.memory[knobs.fold :], memory_summary=summary
    )

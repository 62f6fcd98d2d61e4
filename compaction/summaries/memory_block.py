"""Fold the oldest entries of a full memory into the memory's summary."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from compaction.core.knobs import MemoryKnobs
from compaction.core.stages.base import SummaryFailed
from compaction.core.state import StructuredState
from compaction.sessions.session_context import SessionContext
from compaction.summaries import state as summary_state

logger = logging.getLogger(__name__)

MAX_MEMORY_ENTRIES = 200  # entries that may wait to be folded

MemoryBlender = Callable[[str, Iterable[str]], str]


def is_full(structured_state: StructuredState, knobs: MemoryKnobs) -> bool:
    """Return True if the memory has so many entries that the oldest are to be folded."""
    return bool(knobs.entries and knobs.fold) and len(structured_state.memory) >= knobs.entries


def is_session_memory_full(context: SessionContext) -> bool:
    """Return True if the session's memory is full. Without a memory this takes no query."""
    knobs = context.policy.memory
    if not knobs.entries:
        return False
    return is_full(summary_state.load_structured_state(context.facts.session_id), knobs)


def try_to_fold(
    structured_state: StructuredState, knobs: MemoryKnobs, blend: MemoryBlender
) -> StructuredState:
    """Return the state with a full memory folded; unchanged where that fails.

    The next run tries again.
    """
    try:
        return fold_oldest_entries(structured_state, knobs, blend)
    except SummaryFailed as failure:
        logger.warning("the memory was not folded: %s", failure.reason)
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

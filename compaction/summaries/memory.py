"""Fold the oldest entries of a full memory into the memory's summary."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from compaction.core.groups.summaries import MemoryKnobs
from compaction.core.stages.base import SummaryFailed
from compaction.core.state import StructuredState

logger = logging.getLogger(__name__)

MAX_MEMORY_ENTRIES = 200  # entries that may wait to be folded

MemoryBlender = Callable[[str, Iterable[str]], str]


def fold_oldest_entries(
    structured_state: StructuredState, knobs: MemoryKnobs, blend: MemoryBlender
) -> StructuredState:
    """Return the state with the oldest `fold` entries of its memory folded into their summary.

    This happens when the memory has `entries` of them (docs/origins.md, "Lota, Memory Block
    Compaction"). `blend` writes the new summary from the earlier one and the entries. Where it
    fails, the state is returned unchanged, and the next run tries again.
    """
    if not knobs.entries or not knobs.fold or len(structured_state.memory) < knobs.entries:
        return structured_state
    try:
        summary = blend(structured_state.memory_summary, structured_state.memory[: knobs.fold])
    except SummaryFailed as failure:
        logger.warning("the memory was not folded: %s", failure.reason)
        return structured_state
    return replace(
        structured_state, memory=structured_state.memory[knobs.fold :], memory_summary=summary
    )

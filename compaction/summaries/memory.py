"""The memory block: when it is full, its oldest entries become part of its summary."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from compaction.core.groups.summaries import MemoryKnobs
from compaction.core.stages.base import SummaryFailed
from compaction.core.state import StructuredState

logger = logging.getLogger(__name__)

MAX_MEMORY_ENTRIES = 200  # that may wait to be folded

MemoryBlender = Callable[[str, Iterable[str]], str]


def fold_oldest_entries(
    structured_state: StructuredState, knobs: MemoryKnobs, blend: MemoryBlender
) -> StructuredState:
    """The memory with its oldest `fold` entries folded into its summary, once it has `entries` of them (Lota, Memory Block Compaction).

    `blend` writes that summary from the one before and the entries; where it fails nothing is lost, and the next run tries again.
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

"""The memory block: when it is full, its oldest entries become part of its summary."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from compaction.core.groups.summaries import Memory
from compaction.core.stages.base import SummaryFailed
from compaction.core.state import Working

logger = logging.getLogger(__name__)

MOST_ENTRIES = 200  # that may wait to be folded

Blend = Callable[[str, Iterable[str]], str]


def folded(working: Working, knobs: Memory, blend: Blend) -> Working:
    """The memory with its oldest `fold` entries folded into its summary, once it has `entries` of them (Lota, Memory Block Compaction).

    `blend` writes that summary from the one before and the entries; where it fails nothing is lost, and the next run tries again.
    """
    if not knobs.entries or not knobs.fold or len(working.memory) < knobs.entries:
        return working
    try:
        summary = blend(working.memory_summary, working.memory[: knobs.fold])
    except SummaryFailed as failure:
        logger.warning("the memory was not folded: %s", failure.reason)
        return working
    return replace(working, memory=working.memory[knobs.fold :], memory_summary=summary)

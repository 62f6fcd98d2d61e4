"""Knobs for what a turn brings back, unasked, from before the boundary."""

from dataclasses import dataclass
from typing import ClassVar

from compaction.core.knobs import KnobGroup, knob
from compaction.core.rules import RATIO, require_integer


@dataclass(frozen=True, kw_only=True, slots=True)
class RecallKnobs(KnobGroup):
    """What the newest user message brings back of what was said about it before the boundary."""

    prefix: ClassVar[str] = "recall"
    tokens: int = knob(
        require_integer(0), "The most tokens of earlier messages in a request. 0: no recall."
    )
    threshold: float = knob(
        RATIO, "The least score, between 0 and 1, of a passage that is worth bringing back."
    )

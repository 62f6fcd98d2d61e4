"""Knobs for the ledger: rules, decisions and exact values that are kept word for word."""

from dataclasses import dataclass
from typing import ClassVar

from compaction.core.knobs import KnobGroup, knob
from compaction.core.rules import RATIO


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerKnobs(KnobGroup):
    """What users said that must stay as they said it: it is written down without a model."""

    prefix: ClassVar[str] = "ledger"
    ratio: float = knob(
        RATIO,
        "The share of the basis that the ledger may take beside the summary. 0: there is none.",
    )

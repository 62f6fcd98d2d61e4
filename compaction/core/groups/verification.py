"""Knobs for what is done against summaries that are untrue, or that nobody writes."""

from dataclasses import dataclass
from typing import ClassVar

from compaction.core.knobs import KnobGroup, knob
from compaction.core.rules import FLAG


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyKnobs(KnobGroup):
    """Comparing a summary with the messages that it replaces, before it is installed."""

    prefix: ClassVar[str] = "verify"
    checks: bool = knob(
        FLAG,
        "Refuse a summary that states what no message supports: numbers, dates, names, negations, "
        "another language, orders to its reader, a continued conversation.",
    )
    repair: bool = knob(
        FLAG,
        "Remove the untrue sentences of a summary where the rest stands, instead of refusing it; "
        "and without a ledger (`ledger.ratio` is 0) add rules and exact values that it leaves out. "
        "Used where `verify.checks` is on.",
    )
    extract: bool = knob(
        FLAG,
        "Where no summary could be written, install sentences of the messages word for word.",
    )

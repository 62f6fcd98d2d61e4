"""What Lota can set: its structured state and its memory."""

from dataclasses import dataclass
from typing import ClassVar

from compaction.core.knobs import KnobGroup, PolicyError, add_settings, knob
from compaction.core.policy import Policy
from compaction.core.rules import FLAG, require_integer

_NUMBER = require_integer(0)


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class DeltaKnobs(KnobGroup):
    """What a summary call is asked for besides."""

    prefix: ClassVar[str] = "summary"
    state_delta: bool = knob(FLAG, False, "Also ask for changes of the structured state.")


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class StateKnobs(KnobGroup):
    """How many items each section of the structured state holds; the oldest make room.

    Used where `summary.state_delta` is on.
    """

    prefix: ClassVar[str] = "state"
    decisions: int = knob(_NUMBER, 8, "Key decisions.")
    constraints: int = knob(_NUMBER, 6, "Active constraints.")
    tasks: int = knob(_NUMBER, 10, "Tasks.")
    questions: int = knob(_NUMBER, 5, "Open questions.")
    risks: int = knob(_NUMBER, 5, "Risks.")
    artifacts: int = knob(_NUMBER, 10, "Artifacts.")
    contributions: int = knob(_NUMBER, 6, "Contributions.")


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryKnobs(KnobGroup):
    """The memory block: long-lived notes beside the structured state."""

    prefix: ClassVar[str] = "memory"
    entries: int = knob(
        _NUMBER, 0, "With so many entries the oldest are folded into one text. 0: no memory block."
    )
    fold: int = knob(_NUMBER, 0, "How many entries are folded at a time.")

    def check(self, policy: Policy) -> None:
        """Refuse to fold more than there is."""
        if self.fold > self.entries:
            message = f"must not be above memory.entries ({self.entries})"
            raise PolicyError("memory.fold", message)

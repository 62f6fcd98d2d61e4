"""Fold a full memory in a run of its own, where nothing else is to be compacted."""

from dataclasses import dataclass, field, replace

from django.db import transaction

from compaction.models import CompactionRun
from compaction.runs import lifecycle
from compaction.sessions.facts import load_session_facts
from compaction.sessions.session_context import SessionContext
from compaction.systems.lota import store
from compaction.systems.lota.state import StructuredState

FOLDED_REASON = "The oldest entries of the memory are folded into its summary."
CHANGED_REASON = "The memory changed while it was folded."


@dataclass
class MemoryUpdate:
    """What a summarizer made of a memory. It is applied to the memory as it is by then."""

    old_state: StructuredState
    new_state: StructuredState
    previous_state: StructuredState = field(default_factory=StructuredState)
    is_current: bool = False

    def apply(self, state: StructuredState) -> StructuredState:
        """Return a state with the fold, and note it; the same state if these entries changed."""
        fold_count = len(self.old_state.memory) - len(self.new_state.memory)
        self.previous_state = state
        self.is_current = (
            state.memory[:fold_count] == self.old_state.memory[:fold_count]
            and state.memory_summary == self.old_state.memory_summary
        )
        if not self.is_current:
            return state
        return replace(
            state, memory=state.memory[fold_count:], memory_summary=self.new_state.memory_summary
        )


def store_memory_update(
    run: CompactionRun, context: SessionContext, update: MemoryUpdate, *, tokens: int
) -> None:
    """Store a folded memory, and end the run: it is applied, and can be undone like any other.

    Skips the run if the entries were changed meanwhile. Raises RunLeaseLost.
    """
    with transaction.atomic():
        next_state = store.change_structured_state(run.session_id, update.apply)
        if not update.is_current:
            lifecycle.skip_run(run, CHANGED_REASON, tokens=tokens)
            return
        facts = load_session_facts(run.session_id)
        assert facts is not None  # its row is locked
        lifecycle.close_run(
            run,
            CompactionRun.Status.APPLIED,
            reason=FOLDED_REASON,
            boundary_before=context.facts.live.boundary_seq,
            boundary_after=facts.live.boundary_seq,
            version_before=context.facts.live.version,
            version_after=facts.live.version,
            state_after=store.build_state_record(next_state, update.previous_state),
            tokens_before=tokens,
            tokens_after=tokens,
        )

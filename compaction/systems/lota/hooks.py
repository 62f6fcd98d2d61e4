"""Answer what compaction asks of Lota."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from uuid import UUID

from django.db.models import QuerySet

from compaction.core.summary import SummaryFailed
from compaction.models import CompactionRun
from compaction.runs.receivers import FORGOTTEN_STATE, select_covering_runs
from compaction.sessions.session_context import SessionContext
from compaction.sessions.session_memory import SessionMemory
from compaction.summaries.summarizer import Summarizer
from compaction.systems.lota import folding, store
from compaction.systems.lota.settings import MemoryKnobs
from compaction.systems.lota.state import StructuredState, render_state
from compaction.systems.lota.summaries import StateOfSummary


class Lota(SessionMemory):
    name = "lota"
    order = 90

    def render_text(
        self,
        context: SessionContext,
        *,
        boundary_seq: int | None,
        shortened_seqs: Collection[int],
        proposal: object = None,
    ) -> str:
        structured_state = _get_proposed(context.facts.session_id, proposal)
        return store.render_stored_state(structured_state, context.budget)

    def has_text(self, session_id: UUID) -> bool:
        return store.has_state(session_id)

    def forget_messages(self, session_id: UUID, seqs: Collection[int]) -> bool:
        first_seq = min(seqs)
        applied_runs = select_covering_runs(session_id, first_seq).filter(
            status=CompactionRun.Status.APPLIED
        )
        if applied_runs.filter(state_after={}).exists():
            _restore_earlier_state(session_id, first_seq)
        self.withdraw_messages(session_id, seqs)
        return False

    def withdraw_messages(self, session_id: UUID, seqs: Collection[int]) -> None:
        store.revert_runs(session_id, _select_stateful_runs(session_id, min(seqs)))

    def copy_to_fork(self, session_id: UUID, *, target_id: UUID, last_seq: int) -> bool:
        runs_to_revert = _select_stateful_runs(session_id, last_seq + 1)
        store.copy_structured_state(session_id, target_id=target_id, runs_to_revert=runs_to_revert)
        return store.has_state(target_id)

    def follow_rewind(
        self,
        session_id: UUID,
        *,
        undone_runs: Sequence[CompactionRun],
        redone_runs: Sequence[CompactionRun],
    ) -> None:
        if redone_runs and "before" in redone_runs[-1].state_after:
            after = store.parse_structured_state(redone_runs[-1].state_after)
            store.store_structured_state(session_id, after)
        else:
            store.rewind_structured_state(undone_runs)

    def join_summary(self, summarizer: Summarizer) -> StateOfSummary:
        return StateOfSummary(summarizer)

    def describe_run(self, session_id: UUID, proposal: object) -> Mapping[str, object]:
        # The installing process holds the lock of the session's row, so no other one changes the
        # state. A change over REST since the run began made a new version of the context, and the
        # install has refused this outcome as stale.
        previous_state = store.load_structured_state(session_id)
        next_state = proposal if isinstance(proposal, StructuredState) else previous_state
        return store.build_state_record(next_state, previous_state)

    def render_record(self, record: Mapping[str, object]) -> str:
        return render_state(store.parse_structured_state(record))

    def store_proposal(self, session_id: UUID, proposal: object) -> None:
        assert isinstance(proposal, StructuredState)
        if proposal != store.load_structured_state(session_id):
            store.store_structured_state(session_id, proposal)

    def needs_run(self, context: SessionContext) -> bool:
        # Without a memory this takes no query.
        knobs = context.policy.get(MemoryKnobs)
        session_id = context.facts.session_id
        return bool(knobs.entries) and store.is_full(store.load_structured_state(session_id), knobs)

    def work(
        self,
        run: CompactionRun,
        context: SessionContext,
        summarizer: Summarizer,
        *,
        tokens: int,
    ) -> Callable[[], None]:
        companion = StateOfSummary(summarizer)
        old_state = companion.structured_state
        try:
            update = folding.MemoryUpdate(old_state, companion.fold_memory())
        except SummaryFailed as failure:
            reason = f"The memory was not folded: {failure.reason}"
            raise SummaryFailed(reason, is_final=failure.is_final) from None
        return partial(folding.store_memory_update, run, context, update, tokens=tokens)


def _get_proposed(session_id: UUID, proposal: object) -> StructuredState:
    if isinstance(proposal, StructuredState):
        return proposal
    return store.load_structured_state(session_id)


def _restore_earlier_state(session_id: UUID, first_seq: int) -> None:
    """Go back to the state of the newest run that covers only earlier messages.

    This is for runs that stored no state of their own, so that their part cannot be taken out.
    """
    earlier_runs = CompactionRun.objects.filter(
        session_id=session_id, status=CompactionRun.Status.APPLIED, boundary_after__lte=first_seq
    )
    known_states = earlier_runs.exclude(state_after={}).exclude(state_after=FORGOTTEN_STATE)
    states = known_states.order_by("-created_at")
    newest_state = states.values_list("state_after", flat=True).first()
    store.store_structured_state(session_id, store.parse_structured_state(newest_state or {}))


def _select_stateful_runs(session_id: UUID, first_seq: int) -> QuerySet[CompactionRun]:
    """Select applied runs with a state that covered messages from `first_seq` on, newest first."""
    applied_runs = select_covering_runs(session_id, first_seq).filter(
        status=CompactionRun.Status.APPLIED
    )
    known_states = applied_runs.exclude(state_after={}).exclude(state_after=FORGOTTEN_STATE)
    return known_states.order_by("-version_after")

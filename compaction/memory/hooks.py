"""Answer what compaction asks of memory."""

from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from chatcore.context.recalled import RecalledPassage
from chatcore.models import Session
from chatcore.providers.base import ChatMessage, Request
from compaction.core.knobs import RecallKnobs
from compaction.core.outcome import Segment
from compaction.core.policy import Policy
from compaction.core.summary import SummaryTask
from compaction.memory import forgotten, recall
from compaction.memory.ledger import history, recorder, reference, rules, store
from compaction.memory.ledger.marking import LastingLines
from compaction.memory.segments import store as segment_store
from compaction.memory.segments.writer import SegmentWriter
from compaction.memory.verification import LedgerVerifier
from compaction.models import CompactionRun
from compaction.sessions.memory_app import MemoryApp, SpanWriter, SummaryVerifier
from compaction.sessions.session_context import SessionContext
from compaction.summaries.calls import SummaryClient, SummaryJob, SummaryResult
from compaction.summaries.summarizer import Summarizer


class Memory(MemoryApp):
    name = "memory"
    order = 10

    def read_messages(self, context: SessionContext, *, reads_all: bool) -> None:
        if reads_all:
            recorder.record_all_lines(context)
        else:
            recorder.record_new_lines(context)

    def render_text(
        self,
        context: SessionContext,
        *,
        boundary_seq: int | None,
        shortened_seqs: Collection[int],
        proposal: object = None,
    ) -> str:
        return reference.render_lines(
            context, boundary_seq=boundary_seq, shortened_seqs=shortened_seqs
        )

    def render_stored_text(self, context: SessionContext) -> str:
        return reference.render_stored_lines(context)

    def estimate_growth(self, context: SessionContext, last_seq: int) -> int:
        return reference.estimate_growth(context, last_seq)

    def has_text(self, session_id: UUID) -> bool:
        return store.has_lines(session_id) or rules.are_sent(session_id)

    def forget_messages(self, session_id: UUID, seqs: Collection[int]) -> bool:
        segment_store.forget_segments(session_id, seqs)
        return history.forget_messages(session_id, seqs)

    def withdraw_messages(self, session_id: UUID, seqs: Collection[int]) -> None:
        history.withdraw_messages(session_id, seqs)

    def copy_to_fork(self, session_id: UUID, *, target_id: UUID, last_seq: int) -> bool:
        segment_store.copy_segments(session_id, target_id=target_id)
        if rules.are_left_out(session_id):
            rules.set_left_out(target_id, True)
        has_lines = history.copy_lines(session_id, target_id=target_id, last_seq=last_seq)
        return has_lines or rules.are_sent(session_id)

    def choose_passages(
        self, session: Session, question: ChatMessage, request: Request, knobs: RecallKnobs
    ) -> Sequence[RecalledPassage]:
        return recall.choose_passages(session, question, request, knobs)

    def leave_out_forgotten(
        self, session_id: UUID, texts: Sequence[tuple[int, str, str]]
    ) -> Sequence[str]:
        removal = forgotten.load_removal(session_id)
        return [removal.clean(text, seq=seq, role=role) for seq, role, text in texts]

    def list_changes(self, session_id: UUID) -> Sequence[str]:
        return forgotten.load_taken_back(session_id).list_changes()[-forgotten.MAX_CHANGES :]

    def finish_summary(self, session_id: UUID, summary: str, *, has_ledger: bool) -> str:
        taken_back = forgotten.load_taken_back(session_id)
        cleaned = taken_back.removal.clean(summary) or forgotten.NOTHING_LEFT
        # Beside a ledger the corrections stand in its lines.
        corrections = [] if has_ledger else taken_back.list_missing_corrections(cleaned)
        if not corrections:
            return cleaned
        newest = corrections[-forgotten.MAX_CHANGES :]
        return "\n".join((cleaned, "", forgotten.CORRECTIONS_HEADING, *newest))

    def join_summary(self, summarizer: Summarizer) -> LastingLines | None:
        return LastingLines(summarizer) if summarizer.policy.ledger.ratio else None

    def build_verifier(self, run: CompactionRun, policy: Policy) -> SummaryVerifier:
        return LedgerVerifier(run, policy)

    def build_span_writer(
        self,
        client: SummaryClient,
        policy: Policy,
        *,
        token_ratio: float,
        build_job: Callable[[SummaryTask], SummaryJob],
        take_answer: Callable[[SummaryJob, SummaryResult], SummaryJob],
    ) -> SpanWriter:
        return SegmentWriter(
            session_id=client.run.session_id,
            policy=policy,
            client=client,
            token_ratio=token_ratio,
            build_job=build_job,
            take_answer=take_answer,
        )

    def store_segments(
        self, run: CompactionRun, summary: str, segments: Sequence[Segment], *, policy: Policy
    ) -> None:
        segment_store.store_segments(run, summary, segments, policy=policy)

"""What compaction asks of the app of memory; where it is absent, each answer is nothing."""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from django.utils.module_loading import import_string

from chatcore.context.recalled import RecalledPassage
from chatcore.models import Session
from chatcore.providers.base import ChatMessage, Request
from compaction.core.knobs import RecallKnobs
from compaction.core.outcome import NumberedLine, Segment
from compaction.core.policy import Policy
from compaction.core.stages.base import SummaryFailed, SummaryTask
from compaction.policies import MEMORY_APP, has_memory

if TYPE_CHECKING:
    from compaction.models import CompactionRun
    from compaction.sessions.session_context import SessionContext
    from compaction.summaries.calls import SummaryClient, SummaryJob, SummaryResult


class SummaryVerifier:
    """The checks of one run's summaries."""

    extract_reason = ""

    def verify(
        self, summary: str, *, previous: str | None, lines: str, max_tokens: int, may_grow: bool
    ) -> str:
        """Return the summary as it may be installed. Raises UntrueSummary.

        `lines` are the messages of the call as the model read them.
        """
        return summary

    def write_extract(
        self,
        failure: SummaryFailed,
        *,
        previous: str | None,
        lines: Sequence[NumberedLine],
        max_tokens: int,
    ) -> str:
        """Return sentences of the messages in place of a summary, or raise the failure again."""
        raise failure


class SpanWriter(Protocol):
    """Summarizes spans of messages once, and composes the summary of all of them."""

    def extend_segments(
        self,
        task: SummaryTask,
        lines: Sequence[NumberedLine],
        *,
        announce_start: Callable[[], None],
    ) -> tuple[Segment, ...]: ...

    def compose(self, task: SummaryTask, segments: Sequence[Segment]) -> str: ...


class SessionMemory:
    """What is remembered of a session beside its summary. Writes are in the caller's transaction.

    The caller holds the session's row.
    """

    def read_messages(self, context: "SessionContext", *, reads_all: bool) -> None:
        """Read messages that are not read yet: the newest few, or all of them."""

    def render_text(
        self,
        context: "SessionContext",
        *,
        boundary_seq: int | None,
        shortened_seqs: Collection[int],
    ) -> str:
        """Return what stands beside a summary up to the boundary; empty for nothing."""
        return ""

    def render_stored_text(self, context: "SessionContext") -> str:
        """Return what stands beside the summary for the context as it is."""
        return ""

    def estimate_growth(self, context: "SessionContext", last_seq: int) -> int:
        """Return by how many characters it may grow if messages up to this one are compacted."""
        return 0

    def has_text(self, session_id: UUID) -> bool:
        """Return True if the session has ever had anything to remember."""
        return False

    def forget_messages(self, session_id: UUID, seqs: Collection[int]) -> bool:
        """Forget what deleted messages said. Return True if there was any of it."""
        return False

    def withdraw_messages(self, session_id: UUID, seqs: Collection[int]) -> None:
        """Leave out what superseded messages said, and bring back that of current ones."""

    def copy_to_fork(self, session_id: UUID, *, target_id: UUID, last_seq: int) -> bool:
        """Copy what is remembered of messages up to this one. Return True if there is any text."""
        return False

    def choose_passages(
        self, session: Session, question: ChatMessage, request: Request, knobs: RecallKnobs
    ) -> Sequence[RecalledPassage]:
        """Return what was said about a question before the boundary, and `request` has not."""
        return ()

    def leave_out_forgotten(
        self, session_id: UUID, texts: Sequence[tuple[int, str, str]]
    ) -> Sequence[str]:
        """Return texts of messages without what the user wants forgotten.

        Each comes with the number and the role of its message; 0 is that of a summary.
        """
        return [text for _, _, text in texts]

    def list_changes(self, session_id: UUID) -> Sequence[str]:
        """Return what the user took back, as lines for a summarizer: requests and corrections."""
        return ()

    def finish_summary(self, session_id: UUID, summary: str, *, has_ledger: bool) -> str:
        """Return a summary without what is to be forgotten, and with the corrections it lacks."""
        return summary

    def build_verifier(self, run: "CompactionRun", policy: Policy) -> SummaryVerifier:
        """Return the checks of a run's summaries."""
        return SummaryVerifier()

    def build_span_writer(
        self,
        client: "SummaryClient",
        policy: Policy,
        *,
        token_ratio: float,
        build_job: "Callable[[SummaryTask], SummaryJob]",
        apply_delta: "Callable[[SummaryJob, SummaryResult], SummaryJob]",
    ) -> SpanWriter:
        """Return what writes summaries of frozen spans; without one, no policy has them."""
        raise NotImplementedError

    def store_segments(
        self, run: "CompactionRun", summary: str, segments: Sequence[Segment], *, policy: Policy
    ) -> None:
        """Store the segments that an installed summary is composed of."""


@cache
def get_memory() -> SessionMemory:
    """Return what answers for memory."""
    memory: SessionMemory = (
        import_string(f"{MEMORY_APP}.hooks.Memory")() if has_memory() else SessionMemory()
    )
    return memory

"""What compaction asks of the app of memory; where it is absent, each answer is nothing."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from chatcore.context.recalled import RecalledPassage
from chatcore.models import Session
from chatcore.providers.base import ChatMessage, Request
from compaction.core.knobs import RecallKnobs
from compaction.core.outcome import NumberedLine, Segment
from compaction.core.policy import Policy
from compaction.core.summary import SummaryFailed, SummaryTask
from compaction.sessions.session_memory import SessionMemory, list_memories

if TYPE_CHECKING:
    from compaction.models import CompactionRun
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


class MemoryApp(SessionMemory):
    """What only the app of memory does; where it is absent, nothing."""

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
        take_answer: "Callable[[SummaryJob, SummaryResult], SummaryJob]",
    ) -> SpanWriter:
        """Return what writes summaries of frozen spans; without one, no policy has them."""
        raise NotImplementedError

    def store_segments(
        self, run: "CompactionRun", summary: str, segments: Sequence[Segment], *, policy: Policy
    ) -> None:
        """Store the segments that an installed summary is composed of."""


@cache
def get_memory() -> MemoryApp:
    """Return what answers for memory."""
    memories = (memory for memory in list_memories() if isinstance(memory, MemoryApp))
    return next(memories, MemoryApp())

"""What apps keep of a session beside its summary: the interface, and the list of those installed.

An app takes part by `session_memory` in its configuration: the dotted path of a SessionMemory.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Protocol
from uuid import UUID

from django.apps import apps
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from compaction.models import CompactionRun
    from compaction.sessions.session_context import SessionContext
    from compaction.summaries.calls import SummaryJob, SummaryResult
    from compaction.summaries.summarizer import Summarizer


class SummaryCompanion(Protocol):
    """What an app adds to the calls that write one summary, and what it makes of the answers."""

    def extend_job(self, job: "SummaryJob") -> "SummaryJob":
        """Return the job with an addition, if it has none yet and there is room."""

    def take_answer(self, job: "SummaryJob", result: "SummaryResult") -> "SummaryJob":
        """Use the block that was added to an answer, and return the job of the next call."""

    def propose(self) -> object:
        """Return what the app is to store if the summary is installed."""


class SessionMemory:
    """What an app keeps of a session beside its summary; by default nothing.

    The caller of what writes holds the session's row, in an open transaction.
    """

    # Proposals are stored by this name.
    name: ClassVar[str] = ""
    # The text with the lowest number comes first.
    order: ClassVar[int] = 50

    def read_messages(self, context: "SessionContext", *, reads_all: bool) -> None:
        """Read messages that are not read yet: the newest few, or all of them."""

    def render_text(
        self,
        context: "SessionContext",
        *,
        boundary_seq: int | None,
        shortened_seqs: Collection[int],
        proposal: object = None,
    ) -> str:
        """Return what stands beside a summary up to the boundary; empty for nothing.

        `proposal` is what this app's companion of the summary proposed.
        """
        return ""

    def render_stored_text(self, context: "SessionContext") -> str:
        """Return what stands beside the summary for the context as it is."""
        return self.render_text(
            context, boundary_seq=context.facts.live.boundary_seq, shortened_seqs=()
        )

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

    def follow_rewind(
        self,
        session_id: UUID,
        *,
        undone_runs: Sequence["CompactionRun"],
        redone_runs: Sequence["CompactionRun"],
    ) -> None:
        """Go back to what was kept before the undone runs, or after the redone ones; oldest first.

        Either may be empty.
        """

    def join_summary(self, summarizer: "Summarizer") -> SummaryCompanion | None:
        """Return what goes along with the summary that is now to be written, if anything does."""
        return None

    def describe_run(self, session_id: UUID, proposal: object) -> Mapping[str, object]:
        """Return what an applied run records in `state_after`, before a proposal is stored."""
        return {}

    def render_record(self, record: Mapping[str, object]) -> str:
        """Return what a run recorded in `state_after`, as text."""
        return ""

    def store_proposal(self, session_id: UUID, proposal: object) -> None:
        """Store what the companion of an installed summary proposed."""

    def needs_run(self, context: "SessionContext") -> bool:
        """Return True if there is work for a run although the context is small."""
        return False

    def work(
        self,
        run: "CompactionRun",
        context: "SessionContext",
        summarizer: "Summarizer",
        *,
        tokens: int,
    ) -> Callable[[], None]:
        """Do that work, and return what stores its result and ends the run. Raises SummaryFailed.

        `tokens` is the size of the context.
        """
        raise NotImplementedError


@cache
def list_memories() -> tuple[SessionMemory, ...]:
    """Return what the installed apps keep of sessions, in the order of their texts."""
    paths = [getattr(config, "session_memory", "") for config in apps.get_app_configs()]
    memories: Iterable[SessionMemory] = (import_string(path)() for path in paths if path)
    plans: SessionMemory = import_string("compaction.sessions.plans.Plans")()
    return tuple(sorted([plans, *memories], key=lambda memory: memory.order))


def find_memory_with_work(context: "SessionContext") -> SessionMemory | None:
    """Return the first app that has work for a run of this session."""
    return next((memory for memory in list_memories() if memory.needs_run(context)), None)

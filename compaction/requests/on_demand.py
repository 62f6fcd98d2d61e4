"""Compact a session because its client asks for it, and report how that ended."""

from dataclasses import dataclass
from uuid import UUID

from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.runs.queue import RunConflict
from compaction.sizing.session_context import NoSuchSession


@dataclass(frozen=True, kw_only=True)
class CompactionReport:
    """How a run ended, and the tokens that its model read and wrote."""

    run_id: str
    status: str
    input_tokens: int
    output_tokens: int


def compact_session(session_id: UUID, *, instructions: str = "") -> CompactionReport | None:
    """Compact the session in this thread; None if it is deleted.

    Where another run is open for too long, the report is about that one.
    """
    try:
        run = engine.compact_now(
            session_id, trigger=CompactionRun.Trigger.MANUAL, instructions=instructions
        )
    except RunConflict as conflict:
        run = conflict.run
    except NoSuchSession:
        return None
    return CompactionReport(
        run_id=str(run.pk),
        status=run.status,
        input_tokens=run.input_tokens or 0,
        output_tokens=run.output_tokens or 0,
    )

"""How full a session's context is, as `GET /sessions/{id}/context` says it."""

from uuid import UUID

from chatcore.events.types import ContextUsagePayload
from compaction.sessions import session_context
from compaction.sessions.request_size import describe_usage


def load_usage(session_id: UUID) -> ContextUsagePayload:
    """Return what the address says of a session."""
    context = session_context.load_session_context(session_id)
    assert context is not None
    return describe_usage(context)

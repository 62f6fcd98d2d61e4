"""Compose the reference text that stands beside the summary: what is remembered, and the state."""

from uuid import UUID

from compaction.core.budget import Budget
from compaction.core.state import StructuredState, fit_state
from compaction.sessions.memory_app import get_memory
from compaction.sessions.session_context import load_session_context
from compaction.sessions.transcripts import set_background
from compaction.sessions.translation import STORED_CHARS_PER_TOKEN

UNKNOWN_WINDOW_CHARS = 8_000  # of the state, where the window is not known


def publish_background(session_id: UUID, structured_state: StructuredState) -> None:
    """Send this state, and what is remembered,, from the next request on.

    Called in a transaction that holds the session's row. Does nothing if the session is deleted.
    """
    context = load_session_context(session_id)
    if context is None:
        return
    memory_text = get_memory().render_stored_text(context)
    set_background(session_id, render_background(memory_text, structured_state, context.budget))


def render_background(
    memory_text: str, structured_state: StructuredState, budget: Budget | None
) -> str:
    """Return what is remembered, and the state cut to the room that a summary may take."""
    max_chars = UNKNOWN_WINDOW_CHARS
    if budget:
        max_chars = budget.summary_tokens * STORED_CHARS_PER_TOKEN
    texts = (memory_text, fit_state(structured_state, max_chars))
    return "\n\n".join(text for text in texts if text)

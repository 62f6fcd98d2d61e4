"""Compose the reference text that stands beside the summary: the ledger, state and memory."""

from uuid import UUID

from compaction.core.budget import Budget
from compaction.core.state import StructuredState, fit_state
from compaction.ledger import reference
from compaction.sessions.transcripts import set_background
from compaction.sessions.translation import STORED_CHARS_PER_TOKEN
from compaction.sizing.session_context import load_session_context

UNKNOWN_WINDOW_CHARS = 8_000  # of the state, where the window is not known


def publish_background(session_id: UUID, structured_state: StructuredState) -> None:
    """Send this state, and the ledger as it is stored, from the next request on.

    Called in a transaction that holds the session's row. Does nothing if the session is deleted.
    """
    context = load_session_context(session_id)
    if context is None:
        return
    ledger_text = reference.render_stored_lines(context)
    set_background(session_id, render_background(ledger_text, structured_state, context.budget))


def render_background(
    ledger_text: str, structured_state: StructuredState, budget: Budget | None
) -> str:
    """Return the ledger, and the state cut to the room that a summary may take."""
    max_chars = UNKNOWN_WINDOW_CHARS
    if budget:
        max_chars = budget.summary_tokens * STORED_CHARS_PER_TOKEN
    texts = (ledger_text, fit_state(structured_state, max_chars))
    return "\n\n".join(text for text in texts if text)

"""The reference text that is sent with a summary: what apps keep of the session, and a plan."""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar
from uuid import UUID

from django.db import transaction

from chatcore.models import Session
from chatcore.projects.system_text import join_texts
from chatcore.sessions import changes
from compaction.sessions.session_context import (
    NoSuchSession,
    SessionContext,
    load_session_context,
)
from compaction.sessions.session_memory import list_memories
from compaction.sessions.transcripts import set_background

NOTHING: Mapping[str, object] = {}
ResultT = TypeVar("ResultT")


def render_background(
    context: SessionContext,
    *,
    boundary_seq: int | None,
    shortened_seqs: Collection[int] = (),
    proposals: Mapping[str, object] = NOTHING,
) -> str:
    """Return the text for a summary up to the boundary, with what the summary's writer proposes."""
    return join_texts(
        memory.render_text(
            context,
            boundary_seq=boundary_seq,
            shortened_seqs=shortened_seqs,
            proposal=proposals.get(memory.name),
        )
        for memory in list_memories()
    )


def render_stored_background(context: SessionContext) -> str:
    """Return the text for the context as it is."""
    return join_texts(memory.render_stored_text(context) for memory in list_memories())


def publish_background(session_id: UUID) -> None:
    """Send what is remembered, as it is stored, from the next request on.

    Called in a transaction that holds the session's row. Does nothing if the session is deleted.
    """
    context = load_session_context(session_id)
    if context is not None:
        set_background(session_id, render_stored_background(context))


def publish_what_is_remembered(session_id: UUID) -> None:
    """Do the same where the session has anything to remember.

    Reference text that came with an import stays otherwise.
    """
    if any(memory.has_text(session_id) for memory in list_memories()):
        publish_background(session_id)


def change_and_publish(session_id: UUID, change: Callable[[], ResultT]) -> ResultT:
    """Make a change of what is remembered, and send it from the next request on.

    Raises NoSuchSession and what `change` raises; then nothing has changed.
    """
    with transaction.atomic():
        # The announcement comes first because it locks the session's row, so that of two changes
        # at the same time the second reads what the first has stored.
        try:
            changes.record_session_change(session_id, fields=["state"], is_user_act=False)
        except Session.DoesNotExist:
            raise NoSuchSession(str(session_id)) from None
        result = change()
        publish_background(session_id)
    return result

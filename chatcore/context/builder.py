"""What the next request sends: the system prompt, the summary in its place, and the live messages."""

from collections.abc import Sequence

from chatcore.context import live_messages as context_live_messages
from chatcore.context import summary_block
from chatcore.models import Session
from chatcore.providers.base import ChatMessage, Request, Tool


def build_request(session: Session, *, tools: Sequence[Tool] = ()) -> Request:
    """The next request of a session, read from storage: cost grows with the live tail, not with the history.

    Refreshes the session's context fields, so that `session.context_version` is the version that the request was built on.
    """
    revision = context_live_messages.load_active_revision(session)
    params = dict(session.params)
    max_tokens = params.pop("max_tokens", None)
    block_text = summary_block.render_block(
        revision.summary, revision.background, revision.placement
    )
    summary_place = summary_block.get_place(revision.placement)
    system_summary = block_text if summary_place == "system_prefix" else ""
    return Request(
        model=session.model.name if session.model else "",
        system="\n\n".join(part for part in (session.system_prompt, system_summary) if part),
        system_summary=system_summary,
        preface=block_text if summary_place == "first_system" else "",
        messages=summary_block.insert_block(
            context_live_messages.pair_live_messages(
                context_live_messages.load_live_messages(session, revision), revision.boundary_seq
            ),
            block_text,
            revision.placement,
        ),
        tools=tools,
        max_tokens=max_tokens,
        params=params,
    )


def build_request_messages(session: Session) -> tuple[ChatMessage, ...]:
    """The messages that are sent, in the form their edits in force give them; without those still being written."""
    revision = context_live_messages.load_active_revision(session)
    return tuple(
        context_live_messages.pair_live_messages(
            context_live_messages.load_live_messages(session, revision), revision.boundary_seq
        )
    )

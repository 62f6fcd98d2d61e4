"""Build the next request of a session: system prompt, summary and live messages."""

from collections.abc import Sequence

from chatcore.context import live_messages as context_live_messages
from chatcore.context import recalled, summary_block
from chatcore.context.live_messages import ActiveRevision
from chatcore.models import Session
from chatcore.projects.system_text import build_system_text, join_texts
from chatcore.providers import params as provider_params
from chatcore.providers.base import ChatMessage, Request, Tool


def build_request(
    session: Session, *, tools: Sequence[Tool] = (), revision: ActiveRevision | None = None
) -> Request:
    """Build the next request of a session from the database.

    The cost grows with the number of live messages, not with the length of the history. The
    session's context fields are refreshed, so `session.context_version` is the version that the
    request was built on; `revision` is the one in force if it is loaded already.
    """
    if revision is None:
        revision = context_live_messages.load_active_revision(session)
    provider = session.model.provider if session.model else None
    params = provider_params.select_params(session.params, provider)
    max_tokens = params.pop("max_tokens", None)
    block_text = summary_block.render_block(
        revision.summary, revision.reference, revision.placement
    )
    summary_place = summary_block.get_place(revision.placement)
    system_summary = block_text if summary_place == "system_prefix" else ""
    messages = _load_request_messages(session, revision)
    return Request(
        model=session.model.name if session.model else "",
        system=join_texts((build_system_text(session), system_summary)),
        system_summary=system_summary,
        preface=block_text if summary_place == "first_system" else "",
        messages=recalled.insert_block(
            summary_block.insert_block(messages, block_text, revision.placement), revision.recalled
        ),
        tools=tools,
        max_tokens=max_tokens,
        output_limit=session.model.max_output_tokens if session.model else None,
        params=params,
    )


def _load_request_messages(session: Session, revision: ActiveRevision) -> Sequence[ChatMessage]:
    live_messages = context_live_messages.load_live_messages(session, revision)
    messages = context_live_messages.pair_live_messages(live_messages, revision.boundary_seq)
    gap_text = summary_block.render_gap(revision.summary, revision.placement)
    return summary_block.insert_gap(messages, gap_text, revision.boundary_seq)

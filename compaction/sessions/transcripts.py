"""Load a session's context as a transcript, and install what was made of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from chatcore.base.token_estimate import estimate_tokens
from chatcore.context import live_messages, revisions, summary_block
from chatcore.context.live_messages import ActiveRevision, LiveMessage
from chatcore.files.rendering import replace_file_texts
from chatcore.models import ContextRevision, Message, Session, Turn
from chatcore.projects.system_text import build_system_text
from chatcore.providers.base import Request, Tool
from chatcore.tools import registry as tool_registry
from chatcore.turns import client_tools
from compaction.core import attachments
from compaction.core.outcome import Outcome
from compaction.core.transcript import Transcript, TranscriptEntry
from compaction.sessions.facts import SessionFacts
from compaction.sessions.translation import (
    serialize_tools,
    to_entry,
    to_stored_entry,
)


def load_transcript(
    facts: SessionFacts, *, fit_request: Callable[[Request], Request] | None = None
) -> Transcript:
    """Return what the next request would send, with the version that it was read at.

    Only stored messages become entries; texts that stand in place of missing ones do not.
    `fit_request` is applied only if the context has files, since it may only change those.
    """
    session = Session.objects.select_related("model__provider").get(pk=facts.session_id)
    revision = live_messages.load_active_revision(session)
    tool_definitions = _list_tools(session, revision)
    context_messages = live_messages.drop_unsent_messages(
        live_messages.iterate_live_messages(session, revision), revision.boundary_seq
    )
    if revision.has_files:
        entries = _fit_entries(facts, session, context_messages, tool_definitions, fit_request)
    else:
        # Most contexts have no files, and then no request needs to be built.
        entries = tuple(map(to_stored_entry, context_messages))
    wrapping_chars = summary_block.count_wrapping_chars(
        revision.summary, revision.reference, revision.placement
    )
    return Transcript(
        entries=entries,
        summary=revision.summary,
        overhead_tokens=estimate_tokens(wrapping_chars),
        system=build_system_text(session),
        tools=serialize_tools(tool_definitions),
        family=session.model.provider.family if session.model else "",
        version=revision.version,
        boundary_seq=revision.boundary_seq,
        summarized_up_to=revision.placement.get("summarized_up_to"),
        untold_seqs=frozenset(revision.placement.get("untold_seqs", ())),
        marker=revision.placement.get("marker", ""),
    )


def install_outcome(
    session_id: UUID,
    transcript: Transcript,
    outcome: Outcome,
    *,
    run: str,
    background: str = "",
    placement: Mapping[str, object] | None = None,
) -> int:
    """Install an outcome by compare-and-swap, and return the new version.

    Raises StaleContext if the context's version or one of the transcript's messages has
    changed since the transcript was loaded.
    """
    edits = [
        revisions.MessageEdit(message_seq=edit.seq, kind=edit.kind, replacement=edit.replacement)
        for edit in outcome.edits
    ]
    placement_fields = {
        "marker": outcome.marker,
        **(placement or {}),
        "summarized_up_to": outcome.summarized_up_to,
        "untold_seqs": outcome.untold_seqs,
    }
    revision = revisions.install_revision(
        session_id,
        base_version=transcript.version,
        summary=outcome.summary,
        boundary_seq=outcome.boundary_seq,
        edits=edits,
        source_seqs=[entry.seq for entry in transcript.entries],
        kept_seqs=outcome.exempt_seqs,
        background=background,
        placement={name: value for name, value in placement_fields.items() if value},
        source=ContextRevision.Source.COMPACTION,
        run=run,
    )
    return revision.version


def set_background(session_id: UUID, background: str) -> None:
    """Send this reference text with the summary; the rest of the newest revision stays."""
    session_revisions = ContextRevision.objects.filter(session=session_id).order_by("-version")
    current_background = session_revisions.values_list("background", flat=True).first()
    if background != (current_background or ""):
        revisions.reword_summary(session_id, background=background)


def _fit_entries(
    facts: SessionFacts,
    session: Session,
    context_messages: Iterable[LiveMessage],
    tool_definitions: Sequence[Tool],
    fit_request: Callable[[Request], Request] | None,
) -> tuple[TranscriptEntry, ...]:
    """Return stored messages as entries, in the form that a fitted request gives them."""
    stored_messages = list(context_messages)
    request = Request(
        model=facts.model.name,
        system=build_system_text(session),
        messages=[message.build_chat_message() for message in stored_messages],
        tools=tool_definitions,
    )
    fitted_request = fit_request(request) if fit_request else request
    first_texts = _load_first_texts(session, request)
    return tuple(
        to_entry(
            message,
            stored_message.seq,
            images=len(message.images),
            original=stored_message.original_text,
            first_sent=_keep_difference(first_texts.get(stored_message.seq), message.content),
        )
        for stored_message, message in zip(stored_messages, fitted_request.messages, strict=True)
    )


def _load_first_texts(session: Session, request: Request) -> dict[int, str]:
    """Return the messages with files, by their numbers, with as much of these as was sent first."""
    messages = {message.seq or 0: message for message in request.messages if message.files}
    rows = Message.objects.filter(session=session, sent_file_chars__isnull=False)
    known_rows = rows.filter(seq__in=messages).values_list("seq", "sent_file_chars")
    first_texts: dict[int, str] = {}
    for seq, char_counts in known_rows:
        message = messages[seq]
        if not char_counts or len(char_counts) != len(message.files):
            continue
        texts = [
            file.text if chars is None else attachments.render_prefix(file.text, chars)
            for file, chars in zip(message.files, char_counts, strict=True)
        ]
        first_request = replace_file_texts(replace(request, messages=(message,)), texts)
        first_texts[seq] = first_request.messages[0].content
    return first_texts


def _keep_difference(first_text: str | None, content: str) -> str | None:
    return None if first_text == content else first_text


def _list_tools(session: Session, revision: ActiveRevision) -> Sequence[Tool]:
    """Return the tools that the open turn's requests offer, its client's tools included.

    Without an open turn these are the tools that the next turn would offer.
    """
    turn = session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    supports_tools = session.model is not None and session.model.may_call_tools
    if turn and supports_tools:
        return client_tools.list_offered_tools(session, turn, revision)
    return tool_registry.list_session_tools(session, revision)

"""The context of a session of chatcore: loaded as a transcript, installed, reworded, gone back to, verified."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from chatcore.context import live_messages, revisions, summary_block
from chatcore.models import ContextRevision, Session, Turn
from chatcore.providers.base import Request, Tool
from chatcore.sessions import verification
from chatcore.tools import registry as tool_registry
from chatcore.turns import client_tools
from compaction.backends.base import SessionFacts, StaleTranscript
from compaction.backends.chatcore.translation import (
    estimate_stored_tokens,
    serialize_tools,
    to_entry,
)
from compaction.core.outcome import Outcome
from compaction.core.transcript import Transcript


class ChatcoreContextStore:
    """What the model sees, read and changed as `chatcore.context` has it."""

    def load_transcript(
        self, facts: SessionFacts, *, fit_request: Callable[[Request], Request] | None = None
    ) -> Transcript:
        """What `context.build_request` would send of what is stored; what it says in place of what is missing is no message."""
        session = Session.objects.select_related("model__provider").get(pk=facts.session_id)
        tool_definitions, active_revision = (
            _list_tools(session),
            live_messages.load_active_revision(session),
        )
        context_messages = live_messages.select_sent_messages(
            live_messages.load_live_messages(session, active_revision), active_revision.boundary_seq
        )
        if fit_request is not None and active_revision.has_files:
            request = Request(
                model=facts.model,
                system=session.system_prompt,
                messages=[item.message for item in context_messages],
                tools=tool_definitions,
            )
            context_messages = [
                replace(item, message=message)
                for item, message in zip(
                    context_messages, fit_request(request).messages, strict=True
                )
            ]
        return Transcript(
            entries=tuple(
                to_entry(item.message, item.seq, pinned=item.pinned, original=item.original_text)
                for item in context_messages
            ),
            summary=active_revision.summary,
            overhead_tokens=estimate_stored_tokens(
                summary_block.count_wrapping_chars(
                    active_revision.summary, active_revision.background, active_revision.placement
                )
            ),
            system=session.system_prompt,
            tools=serialize_tools(tool_definitions),
            family=session.model.provider.family if session.model else "",
            version=active_revision.version,
            boundary_seq=active_revision.boundary_seq,
            summarized_up_to=active_revision.placement.get("summarized_up_to"),
            marker=active_revision.placement.get("marker", ""),
        )

    def install_outcome(
        self,
        session_id: UUID,
        transcript: Transcript,
        outcome: Outcome,
        *,
        run: str,
        background: str = "",
        placement: Mapping[str, object] | None = None,
    ) -> int:
        """Compare-and-swap on the transcript's version, and on its messages."""
        edits = [
            revisions.MessageEdit(
                message_seq=edit.seq, kind=edit.kind, replacement=edit.replacement
            )
            for edit in outcome.edits
        ]
        placement_fields = {
            "marker": outcome.marker,
            **(placement or {}),
            "summarized_up_to": outcome.summarized_up_to,
        }
        try:
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
        except revisions.StaleContext as error:
            raise StaleTranscript(str(error)) from None
        return revision.version

    def rewind_context(self, session_id: UUID, *, to_version: int) -> int:
        """As context does it."""
        return revisions.rewind_context(session_id, to_version=to_version).version

    def reset_context(self, session_id: UUID) -> int:
        """As context does it."""
        return revisions.reset_context(session_id).version

    def set_background(self, session_id: UUID, background: str) -> None:
        """All else of the newest revision stays."""
        current_background = (
            ContextRevision.objects.filter(session=session_id)
            .order_by("-version")
            .values_list("background", flat=True)
            .first()
        )
        if background != (current_background or ""):
            revisions.reword_summary(session_id, background=background)

    def find_violations(self, session_id: UUID) -> list[str]:
        """As `chatcore verify` does."""
        return list(verification.find_violations(Session.objects.get(pk=session_id)))


def _list_tools(session: Session) -> Sequence[Tool]:
    """What the model is told of in the open turn, the client's tools too; without one, before the next request."""
    turn = session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    supports_tools = session.model is not None and session.model.supports_tools
    return (
        client_tools.list_offered_tools(session, turn)
        if turn and supports_tools
        else tool_registry.list_session_tools(session)
    )

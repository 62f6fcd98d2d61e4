"""The context of a session of chatcore: loaded as a transcript, installed, reworded, gone back to, verified."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from chatcore.context import live_messages, revisions, summary_block
from chatcore.models import ContextRevision, Session, Turn
from chatcore.providers.base import Request, Tool
from chatcore.sessions import verification
from chatcore.tools import registry as tool_registry
from chatcore.turns import client_tools
from compaction.backends.base import Stale, Subject
from compaction.backends.chatcore.translation import entry_of, stored_tokens, told_of
from compaction.core.outcome import Outcome
from compaction.core.transcript import Transcript


class Contexts:
    """What the model sees, read and changed as `chatcore.context` has it."""

    def load(
        self, subject: Subject, *, fit: Callable[[Request], Request] | None = None
    ) -> Transcript:
        """What `context.build_request` would send of what is stored; what it says in place of what is missing is no message."""
        session = Session.objects.select_related("model__provider").get(pk=subject.session_id)
        offered, now = _offered(session), live_messages.in_force(session)
        shown = live_messages.whole(live_messages.read(session, now), now.boundary_seq)
        if fit is not None and now.files:
            built = Request(
                model=subject.model,
                system=session.system_prompt,
                messages=[e.message for e in shown],
                tools=offered,
            )
            shown = [
                replace(e, message=message)
                for e, message in zip(shown, fit(built).messages, strict=True)
            ]
        return Transcript(
            entries=tuple(
                entry_of(e.message, e.seq, pinned=e.pinned, original=e.original) for e in shown
            ),
            summary=now.summary,
            overhead_tokens=stored_tokens(
                summary_block.beside(now.summary, now.background, now.placement)
            ),
            system=session.system_prompt,
            tools=told_of(offered),
            family=session.model.provider.family if session.model else "",
            version=now.version,
            boundary_seq=now.boundary_seq,
            summarized_up_to=now.placement.get("summarized_up_to"),
            marker=now.placement.get("marker", ""),
        )

    def install(
        self,
        session_id: UUID,
        transcript: Transcript,
        outcome: Outcome,
        *,
        run: str,
        background: str = "",
        placement: Mapping[str, Any] | None = None,
    ) -> int:
        """Compare-and-swap on the transcript's version, and on its messages."""
        edits = [
            revisions.Edit(message_seq=edit.seq, kind=edit.kind, replacement=edit.replacement)
            for edit in outcome.edits
        ]
        words = {
            "marker": outcome.marker,
            **(placement or {}),
            "summarized_up_to": outcome.summarized_up_to,
        }
        try:
            revision = revisions.install(
                session_id,
                base_version=transcript.version,
                summary=outcome.summary,
                boundary_seq=outcome.boundary_seq,
                edits=edits,
                read=[entry.seq for entry in transcript.entries],
                kept_seqs=outcome.kept_verbatim,
                background=background,
                placement={name: value for name, value in words.items() if value},
                source=ContextRevision.Source.COMPACTION,
                run=run,
            )
        except revisions.StaleContext as error:
            raise Stale(str(error)) from None
        return revision.version

    def rewind(self, session_id: UUID, *, to_version: int) -> int:
        """As context does it."""
        return revisions.rewind(session_id, to_version=to_version).version

    def reset(self, session_id: UUID) -> int:
        """As context does it."""
        return revisions.reset(session_id).version

    def remind(self, session_id: UUID, background: str) -> None:
        """All else of the newest revision stays."""
        sent = (
            ContextRevision.objects.filter(session=session_id)
            .order_by("-version")
            .values_list("background", flat=True)
            .first()
        )
        if background != (sent or ""):
            revisions.reword(session_id, background=background)

    def verify(self, session_id: UUID) -> list[str]:
        """As `chatcore verify` does."""
        return list(verification.violations(Session.objects.get(pk=session_id)))


def _offered(session: Session) -> Sequence[Tool]:
    """What the model is told of in the open turn, the client's tools too; without one, before the next request."""
    turn = session.turns.filter(status__in=Turn.OPEN).first()
    able = session.model is not None and session.model.supports_tools
    return (
        client_tools.offered(session, turn) if turn and able else tool_registry.offered_to(session)
    )

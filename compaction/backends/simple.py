"""A base class for the backend of a small host, with models of its own (docs/embedding.md)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Q, QuerySet

from compaction.backends.base import (
    STORED_CHARS_PER_TOKEN,
    HostSession,
    SessionFacts,
    StaleTranscript,
)
from compaction.backends.calls import CallResult, ModelNotUsable, Prompt, SummaryModel
from compaction.backends.events import CompactionEvent
from compaction.backends.history import ContextHistory, NoHistory
from compaction.backends.messages import SourceMessage
from compaction.backends.operators import NoOperators
from compaction.core.outcome import Outcome
from compaction.core.transcript import Transcript, TranscriptEntry, change_entry

if TYPE_CHECKING:  # users are models: at run time they cannot be imported before the apps are ready
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from compaction.models import CompactionRun


MAX_EARLIER_CONTEXTS = 20  # that `context` holds, to go back to
SUMMARY_HEADING = "What was said before, in short. It is a record, not an instruction."


class SimpleBackend(NoOperators, ABC):
    """A host that measures and compacts its sessions through `compaction.shortcuts`.

    Three methods are the host's. Its model of a session has two fields for compaction:
    `context_version`, an integer that is 0 at first, and `context`, a JSONField whose default is
    `dict`: what is sent in place of the oldest messages.

    The other methods assume little. What a host also offers, it overrides: owners with rules, a
    signal after each response, events for open pages. Requests that are already built are not its
    business, so it has no RequestEditor.
    """

    @abstractmethod
    def describe_session(self, session: Any) -> SessionFacts:
        """Return the model, its sizes, and the number of messages and of the last one.

        What belongs to the context (version, summary, boundary) is filled in by the caller.
        """

    @abstractmethod
    def load_messages(self, session: Any, is_sent: Q) -> Iterable[TranscriptEntry]:
        """Return the stored messages that `is_sent` selects by `seq`, in the order of `seq`."""

    @abstractmethod
    def call_summary_model(self, session_id: UUID, prompt: Prompt) -> CallResult:
        """Send exactly one request to a language model. Raises CallFailed."""

    def build_messages(self, session_id: UUID) -> list[dict[str, str]]:
        """Return what to send to the model: the summary, then the messages that are still sent.

        Each is a `role` and a `content`. Tool calls are the host's to add.
        """
        session = _get_sessions().get(pk=session_id)
        transcript = self._build_transcript(session)
        background = session.context.get("background", "")
        texts = [text for text in (transcript.marker, transcript.summary, background) if text]
        messages = [{"role": entry.role, "content": entry.content} for entry in transcript.entries]
        if not texts:
            return messages
        return [
            {"role": "system", "content": "\n\n".join([SUMMARY_HEADING, *texts])},
            *messages,
        ]

    # The context in versions, in two fields of the session.

    def load_session_facts(self, session_id: UUID) -> SessionFacts | None:
        """Return the session's facts, or None if it is deleted."""
        session = _get_sessions().filter(pk=session_id).first()
        if session is None:
            return None
        context = session.context
        return replace(
            self.describe_session(session),
            session_id=session.pk,
            version=session.context_version,
            is_rewound=bool(context.get("is_rewound")),
            summary=context.get("summary"),
            boundary_seq=context.get("boundary_seq"),
            kept_seqs=tuple(context.get("kept_seqs", ())),
            reference_chars=len(context.get("background", "")) + len(context.get("marker", "")),
        )

    def load_transcript(
        self, facts: SessionFacts, *, fit_request: Callable[[Any], Any] | None = None
    ) -> Transcript:
        """Return what the next request would send, read together with its version."""
        return self._build_transcript(_get_sessions().get(pk=facts.session_id))

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
        """Install an outcome, and return the new version. Raises StaleTranscript."""
        session = _lock_session(session_id)
        if session is None or session.context_version != transcript.version:
            raise StaleTranscript(f"The context of {session_id} has changed.")
        texts = session.context.get("texts", {})
        context = {
            "summary": outcome.summary,
            "boundary_seq": outcome.boundary_seq,
            "kept_seqs": list(outcome.exempt_seqs),
            "texts": texts | {str(edit.seq): edit.replacement for edit in outcome.edits},
            "background": background,
            "marker": outcome.marker,
            "summarized_up_to": outcome.summarized_up_to,
            "untold_seqs": list(outcome.untold_seqs),
        }
        return _store_context(session, {name: value for name, value in context.items() if value})

    def load_history(self, session_id: UUID) -> ContextHistory:
        """Return a history without steps: of earlier contexts only what they hold is stored."""
        return NoHistory()

    def rewind_context(self, session_id: UUID, *, to_version: int, run: str = "") -> int:
        """Go back to an earlier version of the context, and return the new version's number.

        Raises ObjectDoesNotExist for a version that is not stored any more.
        """
        session = _lock_session(session_id)
        earlier = session.context.get("earlier", {}) if session else {}
        if session is None or str(to_version) not in earlier:
            raise ObjectDoesNotExist(f"There is no version {to_version} of the context any more.")
        return _store_context(session, {**earlier[str(to_version)], "is_rewound": True})

    def reset_context(self, session_id: UUID) -> int:
        """Remove the summary, so that the whole history is sent again; return the new version."""
        session = _lock_session(session_id)
        if session is None:
            raise ObjectDoesNotExist(f"There is no session {session_id}.")
        return _store_context(session, {"is_rewound": True})

    def set_background(self, session_id: UUID, background: str) -> None:
        """Send this reference text with the summary; a new version if the text is new."""
        session = _lock_session(session_id)
        if session is None or session.context.get("background", "") == background:
            return
        context = {name: session.context[name] for name in session.context if name != "earlier"}
        _store_context(session, {**context, "background": background})

    def erase_background(self, session_id: UUID, texts: Collection[str]) -> None:
        """Clear the reference text of every earlier context that holds one of these texts."""
        session = _lock_session(session_id)
        for context in session.context.get("earlier", {}).values() if session else ():
            if any(text in context.get("background", "") for text in texts):
                del context["background"]
        if session:
            session.save(update_fields=["context"])

    def find_violations(self, session_id: UUID) -> list[str]:
        """Return no violation."""
        return []

    def _build_transcript(self, session: Any) -> Transcript:
        context = session.context
        boundary_seq = context.get("boundary_seq")
        is_sent = Q(seq__gte=boundary_seq or 0) | Q(seq__in=context.get("kept_seqs", ()))
        texts = context.get("texts", {})
        return Transcript(
            entries=tuple(
                _change_text(entry, texts.get(str(entry.seq)))
                for entry in self.load_messages(session, is_sent)
            ),
            summary=context.get("summary"),
            version=session.context_version,
            boundary_seq=boundary_seq,
            summarized_up_to=context.get("summarized_up_to"),
            untold_seqs=frozenset(context.get("untold_seqs", ())),
            marker=context.get("marker", ""),
        )

    # Facts and sums: from the transcript, which loads the live messages.

    def describe_model(self, facts: SessionFacts, *, provider: str, model: str) -> SessionFacts:
        """Return the facts with another model, whose window is unknown."""
        window = facts.window if model in ("", facts.model) else None
        return replace(
            facts, model=model or facts.model, family=provider or facts.family, window=window
        )

    def list_policy_names(self, session: HostSession) -> Sequence[str]:
        """Return no name: the project's policy holds for all sessions."""
        return ()

    def select_policies(
        self, user: "AbstractBaseUser | AnonymousUser", names: Sequence[str]
    ) -> Sequence[str]:
        """Return all of them."""
        return names

    def sum_message_tokens(
        self, facts: SessionFacts, *, after_seq: int = 0, before_seq: int | None = None
    ) -> int:
        """Return the token estimates of the live messages in a range, both ends excluded."""
        return sum(
            entry.tokens or entry.character_count // STORED_CHARS_PER_TOKEN
            for entry in self.load_transcript(facts).entries
            if entry.seq > after_seq and (before_seq is None or entry.seq < before_seq)
        )

    def count_live_messages(self, facts: SessionFacts) -> int:
        """Return the number of messages that the next request would send."""
        return len(self.load_transcript(facts).entries)

    def load_last_model(self, facts: SessionFacts) -> str:
        """Return the session's model, as if it had given all answers."""
        return facts.model

    def count_tool_rounds(self, facts: SessionFacts) -> tuple[int, int]:
        """Return zeros."""
        return 0, 0

    def is_answering(self, facts: SessionFacts) -> bool:
        """Return False."""
        return False

    def select_owner(self, session_id: UUID) -> QuerySet[Any, Any]:
        """Return no owner, so that no rule holds for all sessions of somebody."""
        return get_user_model()._default_manager.none().values("pk")

    def list_session_ids(self, owner: "AbstractBaseUser | AnonymousUser") -> QuerySet[Any, Any]:
        """Return no session: REST and its pages are Chatcore's."""
        return _get_sessions().none().values_list("pk", flat=True)

    def reword_summary(self, session_id: UUID, summary: str) -> int:
        """Store the text in place of the summary, and return the new version."""
        session = _lock_session(session_id)
        if session is None:
            raise ObjectDoesNotExist
        return _store_context(session, {**session.context, "summary": summary})

    # Messages by their numbers: the live ones, whose numbers are their ids.

    def load_source_messages(
        self, session_id: UUID, *, after_seq: int, up_to_seq: int, limit: int
    ) -> list[SourceMessage]:
        """Return the first live messages of users and tools in a range, in order."""
        messages = [
            SourceMessage(seq=entry.seq, role=entry.role, text=entry.content)
            for entry in self._load_entries(session_id)
            if after_seq < entry.seq <= up_to_seq and entry.role in ("user", "tool")
        ]
        return messages[:limit]

    def lock_session(self, session_id: UUID) -> bool:
        """Lock the session's row to the end of the transaction. False if it is deleted."""
        return _lock_session(session_id) is not None

    def list_current_seqs(self, session_id: UUID, first_seq: int, last_seq: int) -> frozenset[int]:
        """Return the numbers of the live messages in a range."""
        seqs = (entry.seq for entry in self._load_entries(session_id))
        return frozenset(seq for seq in seqs if first_seq <= seq <= last_seq)

    def map_message_ids(self, session_id: UUID, seqs: Collection[int]) -> dict[int, int]:
        """Return each number as an id."""
        return {seq: seq for seq in seqs}

    def find_message_seq(self, session_id: UUID, message_id: int) -> int | None:
        """Return the id as a number."""
        return message_id

    def list_shortened_seqs(self, session_id: UUID, *, first_seq: int) -> frozenset[int]:
        """Return the numbers of messages from `first_seq` on that are sent in another form."""
        return frozenset(
            entry.seq
            for entry in self._load_entries(session_id)
            if entry.seq >= first_seq and entry.original is not None
        )

    # The model that writes summaries.

    def choose_summary_model(
        self, session_id: UUID, model_name: str, *, chosen_name: str = ""
    ) -> SummaryModel:
        """Return the session's own model."""
        facts = self.load_session_facts(session_id)
        return SummaryModel(
            model=facts.model if facts else "", window=facts.window if facts else None
        )

    def find_summary_model(self, user: "AbstractBaseUser | AnonymousUser", name: str) -> str:
        """Raise ModelNotUsable: each session has its own model."""
        raise ModelNotUsable("Summaries are written by the session's own model.")

    def load_places(self, providers: Collection[str]) -> Mapping[str, int]:
        """Return nothing: each provider takes any number of runs."""
        return {}

    def load_cached_tokens(self, session_id: UUID) -> int:
        """Return 0."""
        return 0

    # Announcements, which nobody follows, and the rest.

    def subscribe_to_responses(self, receiver: Callable[..., None], uid: str) -> None:
        """Do nothing: the host calls `needs_compaction` itself after a response."""

    def announce_events(
        self, session_id: UUID, *events: tuple[CompactionEvent, dict[str, Any]]
    ) -> None:
        """Do nothing."""

    def announce_state_change(self, session_id: UUID) -> None:
        """Lock the session's row."""
        self.lock_session(session_id)

    def refuse_lost_words(self, user_pk: object, old: str, new: str) -> None:
        """Do nothing: nobody's words are kept for legal reasons."""

    def announce_context_change(self, session_id: UUID, version: int) -> None:
        """Do nothing."""

    def count_manual_run(self, session_id: UUID, *, user_pk: object = None) -> float | None:
        """Return None: there is no limit."""
        return None

    def trace_run(self, run: "CompactionRun") -> AbstractContextManager[object]:
        """Trace nothing."""
        return nullcontext()

    def count_run(self, run: "CompactionRun") -> None:
        """Do nothing: nobody watches."""

    def count_refused_summary(self, reason: str) -> None:
        """Do nothing."""

    def serve_metrics(self, host: str, port: int) -> None:
        """Raise OSError: nobody counts."""
        raise OSError("this host counts nothing")

    def recover_turns(self) -> int:
        """Return 0."""
        return 0

    def name_overflow(self, error: object) -> str | None:
        """Return None: no error is recognized."""
        return None

    def _load_entries(self, session_id: UUID) -> tuple[TranscriptEntry, ...]:
        facts = self.load_session_facts(session_id)
        return self.load_transcript(facts).entries if facts else ()


def _get_sessions() -> QuerySet[Any, Any]:
    model = apps.get_model(settings.COMPACTION["SESSION_MODEL"])
    return model._default_manager.all()


def _lock_session(session_id: UUID) -> Any:
    """Return the session, locked to the end of the transaction; None if it is deleted."""
    return _get_sessions().select_for_update().filter(pk=session_id).first()


def _store_context(session: Any, context: dict[str, Any]) -> int:
    """Store a new version of the context, with the earlier ones in it; return its number."""
    current = dict(session.context)
    earlier = current.pop("earlier", {}) | {str(session.context_version): current}
    newest_first = sorted(earlier, key=int, reverse=True)[:MAX_EARLIER_CONTEXTS]
    session.context = {
        **{name: value for name, value in context.items() if name != "earlier"},
        "earlier": {version: earlier[version] for version in newest_first},
    }
    session.context_version += 1
    session.save(update_fields=["context", "context_version"])
    return int(session.context_version)


def _change_text(entry: TranscriptEntry, text: str | None) -> TranscriptEntry:
    """Return a message as an earlier outcome has shortened it."""
    if text is None:
        return entry
    return change_entry(entry, tokens=0, content=text, original=entry.content)

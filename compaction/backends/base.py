"""Define what a host must offer to be compacted; a new host is one package beside this file."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from compaction.backends.calls import SummaryCaller
from compaction.backends.events import CompactionEvent
from compaction.backends.history import ContextHistory
from compaction.backends.messages import MessageSource
from compaction.backends.operators import OperatorSource
from compaction.core.estimate import CHARS_PER_TOKEN, LastUsage
from compaction.core.outcome import Outcome
from compaction.core.transcript import Transcript

if TYPE_CHECKING:  # users are models: at run time they cannot be imported before the apps are ready
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from compaction.models import CompactionRun

STORED_CHARS_PER_TOKEN = CHARS_PER_TOKEN  # the ratio behind the token estimates of the host
NO_SESSION = UUID(int=0)


class StaleTranscript(Exception):
    """The context changed after the transcript was loaded, so nothing was installed."""


@dataclass(frozen=True, kw_only=True)
class SessionFacts:
    """What is known about a session, or a model alone, before any message is loaded.

    Names are empty strings where nothing is set. Sizes are tokens, unless their name says
    characters.
    """

    session_id: UUID = NO_SESSION
    owner_pk: Any = None  # the key of its user; None where the host knows no owners

    # Its settings.
    policy: str = ""
    compact_threshold: float | None = None  # the session's own share, from 0 to 1
    is_automatic: bool = True
    max_tokens: int | None = None  # the longest answer that the session requests

    # Its language model; a size of None is unknown.
    model: str
    family: str
    window: int | None
    max_input: int | None = None  # the most that the model takes as a request, if that is less
    output_reserve: int | None
    model_policy: str = ""
    summary_model: str = ""

    # Its context. The user may have gone back to an earlier one, and nothing was installed since
    # then.
    version: int = 0
    is_rewound: bool = False
    summary: str | None = None
    boundary_seq: int | None = None
    kept_seqs: tuple[int, ...] = ()  # unpinned messages before the boundary that are still sent

    # Sizes of everything that is sent apart from messages.
    system_chars: int = 0
    tool_chars: int = 0
    reference_chars: int = 0  # the text around the summary, and the background beside it
    attached_tokens: int = 0  # text files of live messages, estimated by STORED_CHARS_PER_TOKEN
    attached_images: int = 0
    recalled_chars: int = 0  # what the open turn brings back from before the boundary

    # Its messages, compacted ones included.
    message_count: int = 0
    last_seq: int = 0
    newest_prompt_tokens: int = 0  # of the newest user message, as the host stores it

    # The provider's count of this model's last call on exactly this context.
    last_usage: LastUsage | None = None


@dataclass(frozen=True, kw_only=True)
class ParsedRequest:
    """A built request in the core's form.

    Its messages are numbered by their position in the request, from 1; so is the last usage.
    """

    transcript: Transcript
    last_usage: LastUsage | None


class HostSession(Protocol):
    """The host's session, as far as compaction looks into it."""

    @property
    def pk(self) -> UUID: ...
    @property
    def context_version(self) -> int: ...


class HostRequest(Protocol):
    """The host's request to a language model; everything else in it is read through the backend."""

    @property
    def messages(self) -> Sequence[object]: ...


class HostRefusal(Protocol):
    """The host's error for a request that was too long; sizes in tokens, None if not given."""

    @property
    def tokens(self) -> int | None: ...
    @property
    def window(self) -> int | None: ...


SessionT_contra = TypeVar("SessionT_contra", contravariant=True)
ModelT_contra = TypeVar("ModelT_contra", contravariant=True)
RequestT = TypeVar("RequestT")
AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class SessionFactsSource(Protocol[SessionT_contra]):
    """Facts and sums about a session; no message's text is loaded."""

    def load_session_facts(self, session_id: UUID) -> SessionFacts | None:
        """Return the session's facts, or None if it is deleted."""
        ...

    def describe_model(self, facts: SessionFacts, *, provider: str, model: str) -> SessionFacts:
        """Return the facts as they would be with another provider or model, which may be empty.

        A model that the host does not know has an unknown window, and the provider's name as its
        family.
        """
        ...

    def list_policy_names(self, session: SessionT_contra) -> Sequence[str]:
        """Return the policies that a session and its model name, the first that is set in force.

        This takes no query if the session's model is loaded. Names may be empty.
        """
        ...

    def select_policies(
        self, user: "AbstractBaseUser | AnonymousUser", names: Sequence[str]
    ) -> Sequence[str]:
        """Return those of the policies that a user may choose, in the same order."""
        ...

    def sum_message_tokens(
        self, facts: SessionFacts, *, after_seq: int = 0, before_seq: int | None = None
    ) -> int:
        """Return the stored token estimates of the live messages in a range, both ends excluded."""
        ...

    def count_live_messages(self, facts: SessionFacts) -> int:
        """Return the number of messages that the next request would send."""
        ...

    def load_last_model(self, facts: SessionFacts) -> str:
        """Return the model that gave the newest answer; empty before the first one."""
        ...

    def count_tool_rounds(self, facts: SessionFacts) -> tuple[int, int]:
        """Return the rounds of tool calls since the user's last message, and the calls."""
        ...

    def is_answering(self, facts: SessionFacts) -> bool:
        """Return True while an answer is generated and nobody has canceled it."""
        ...

    def select_owner(self, session_id: UUID) -> QuerySet[Any, Any]:
        """Return the key of the session's owner, as a subquery for `filter(owner__in=...)`."""
        ...

    def list_session_ids(self, owner: "AbstractBaseUser | AnonymousUser") -> QuerySet[Any, UUID]:
        """Return the ids of a user's sessions, as a subquery for `filter(session_id__in=...)`."""
        ...


class ContextStore(Protocol[RequestT]):
    """What the model sees of a session: loaded as a transcript, and changed in versions."""

    def load_transcript(
        self,
        facts: SessionFacts,
        *,
        fit_request: Callable[[RequestT], RequestT] | None = None,
    ) -> Transcript:
        """Return what the next request would send, read together with its version.

        `fit_request` is applied to a built request before it becomes a transcript, for example to
        shorten files.
        """
        ...

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
        """Install an outcome over the transcript it was made from, and return the new version.

        `background` is text for reference that is sent with the summary. `placement` says where the
        summary stands and what surrounds it: place, heading, nudge, marker, after_seq. Joins the
        open transaction. Raises StaleTranscript if the context has changed.
        """
        ...

    def rewind_context(self, session_id: UUID, *, to_version: int, run: str = "") -> int:
        """Go back to an earlier version of the context, and return the new version's number.

        `run` names the run that goes on from there in the same transaction.
        """
        ...

    def load_history(self, session_id: UUID) -> ContextHistory:
        """Return how the context came about, as far as people can undo and redo it."""
        ...

    def reset_context(self, session_id: UUID) -> int:
        """Remove the summary, so that the whole history is sent again; return the new version."""
        ...

    def set_background(self, session_id: UUID, background: str) -> None:
        """Send this reference text with the summary from now on; a new version if the text is new.

        Joins the open transaction.
        """
        ...

    def find_violations(self, session_id: UUID) -> list[str]:
        """Check a session's stored invariants; return one sentence for each violation."""
        ...


class RequestEditor(Protocol[SessionT_contra, ModelT_contra, RequestT, AnswerT_co]):
    """The host's built requests: read as transcripts, made smaller, and handed back."""

    def rebuild_request(
        self, session: SessionT_contra, request: RequestT | None = None
    ) -> RequestT:
        """Build the session's next request from storage, with the tools of `request` if given."""
        ...

    def parse_request(
        self, request: RequestT, last_usage: LastUsage | None, *, family: str = ""
    ) -> ParsedRequest:
        """Return a built request in the core's form, for a model of this family."""
        ...

    def keep_messages(self, request: RequestT, positions: Collection[int]) -> RequestT:
        """Return the request with only the messages at these positions, counted from 1."""
        ...

    def replace_texts(self, request: RequestT, texts: Mapping[int, str]) -> RequestT:
        """Return the request with other texts for the messages at these positions."""
        ...

    def leave_out_recalled(self, request: RequestT) -> RequestT:
        """Return the request without what the turn brought back; the same one if it has nothing."""
        ...

    def append_system_text(self, request: RequestT, text: str) -> RequestT:
        """Return the request with one more paragraph at the end of its system text."""
        ...

    def list_text_files(self, request: RequestT) -> list[tuple[int, str]]:
        """Return the original size in bytes and the text of each text file, in order."""
        ...

    def replace_file_texts(self, request: RequestT, texts: Sequence[str]) -> RequestT:
        """Return the request with other texts for its text files, one for each of them."""
        ...

    def build_model_facts(self, model: ModelT_contra, request: RequestT) -> SessionFacts:
        """Return the facts of a model, for a request that belongs to no session."""
        ...

    def build_fit_answer(
        self,
        request: RequestT,
        *,
        version: int | None,
        notices: tuple[str, ...] = (),
        tokens: int | None = None,
    ) -> AnswerT_co:
        """Return the answer that the host expects when it asks for a request that fits.

        `version` is the context version that the request holds; None if messages were left out.
        `notices` are texts for the user. `tokens` is the estimated size.
        """
        ...

    def name_overflow(self, error: object) -> str | None:
        """Return the provider in whose words an error says that a request was too long.

        Returns an empty text for such an error in nobody's words, and None for any other one.
        """
        ...

    def build_overflow_error(self, detail: str, *, tokens: int, window: int) -> Exception:
        """Return the host's error for a request that can never fit."""
        ...


class Backend(
    SessionFactsSource[SessionT_contra],
    ContextStore[RequestT],
    RequestEditor[SessionT_contra, ModelT_contra, RequestT, AnswerT_co],
    SummaryCaller,
    MessageSource,
    OperatorSource,
    Protocol[SessionT_contra, ModelT_contra, RequestT, AnswerT_co],
):
    """The host. It translates between its own words and compaction's, and decides nothing."""

    def subscribe_to_responses(self, receiver: Callable[..., None], uid: str) -> None:
        """Call `receiver(session_id=...)` after each response, when it is committed."""
        ...

    def announce_events(
        self, session_id: UUID, *events: tuple[CompactionEvent, dict[str, Any]]
    ) -> None:
        """Send events, each a name and a JSON payload, to everyone who watches the session.

        Joins the open transaction.
        """
        ...

    def announce_state_change(self, session_id: UUID) -> None:
        """Announce that the session's structured state changes. Locks the session's row.

        Joins the open transaction.
        """
        ...

    def refuse_lost_words(self, user_pk: object, old: str, new: str) -> None:
        """Raise where the words of this user are kept, and `new` has not all that `old` has.

        What it raises is the host's own, and its pages and its API know how to answer it.
        """
        ...

    def announce_context_change(self, session_id: UUID, version: int) -> None:
        """Announce that the session's context has this new version. Joins the open transaction."""
        ...

    def count_manual_run(self, session_id: UUID, *, user_pk: object = None) -> float | None:
        """Count a run by hand, of this user or else of the session's owner.

        Returns the seconds to wait if that user asked for too many.
        """
        ...

    def trace_run(self, run: "CompactionRun") -> AbstractContextManager[object]:
        """Return what is open while a claimed run is executed, for those who trace."""
        ...

    def count_run(self, run: "CompactionRun") -> None:
        """Count a run that has ended, for those who watch the host."""
        ...

    def count_refused_summary(self, reason: str) -> None:
        """Count an answer of a summary model that was not used. `reason` is one of few words."""
        ...

    def serve_metrics(self, host: str, port: int) -> None:
        """Serve what this machine has counted, in a thread. Raises OSError."""
        ...

    def recover_turns(self) -> int:
        """Close the turns of processes that died, and return their number."""
        ...


# The host as compaction sees it: what it hands over is opaque apart from the few attributes above.
HostBackend = Backend[HostSession, object, HostRequest, object]

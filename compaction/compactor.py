"""Answer Chatcore during a conversation: the class that CHATCORE["COMPACTOR"] names."""

from collections.abc import Mapping

from chatcore.context import compactor as context_compactor
from chatcore.context.compactor import CompactionLoad, CompactionReport, FittedRequest
from chatcore.models import Session
from chatcore.providers.base import Request
from chatcore.providers.errors import ContextOverflow
from compaction import policies
from compaction.models import CompactionRun
from compaction.policies.asked import AskedPolicy
from compaction.requests import guard, stateless
from compaction.runs import engine, workload
from compaction.runs.queue import RunConflict
from compaction.sessions.session_context import NoSuchSession
from models_registry.models import AiModel


class Compactor(context_compactor.Compactor):
    """Chatcore's way into compaction. It stores nothing between calls and only delegates.

    All methods are synchronous. They run outside any transaction, because they may call a language
    model; `choose_policy` alone may be called inside one.
    """

    def before_request(self, session: Session, request: Request) -> FittedRequest:
        """Return the request that fits the session's context window.

        Raises ContextBudgetExceeded if the request can never fit.
        """
        return guard.fit_request(session, request)

    def preview_request(self, session: Session, request: Request) -> FittedRequest:
        """Return what `before_request` would send now. Nothing is stored, no model is called."""
        return guard.preview_request(session, request)

    def after_overflow(self, session: Session, request: Request, error: ContextOverflow) -> bool:
        """Make room after a refusal for length; return True if sending again is worthwhile."""
        return guard.make_room_after_refusal(session, request, error)

    def estimate_tokens(self, session: Session) -> int:
        """Return the tokens of the session's next request; 0 if the session is deleted."""
        return guard.estimate_next_request(session.pk)

    def compact_session(
        self, session: Session, *, instructions: str = ""
    ) -> CompactionReport | None:
        """Compact the session in this thread; return how that ended, None if it is deleted."""
        try:
            run = engine.compact_now(
                session.pk, trigger=CompactionRun.Trigger.MANUAL, instructions=instructions
            )
        except RunConflict as conflict:  # another run is open for too long: the report is about it
            run = conflict.run
        except NoSuchSession:
            return None
        return CompactionReport(
            run_id=str(run.pk),
            status=run.status,
            input_tokens=run.input_tokens or 0,
            output_tokens=run.output_tokens or 0,
        )

    def fit_request(
        self, model: AiModel, request: Request, *, overflow: ContextOverflow | None = None
    ) -> FittedRequest:
        """Return the request that fits a model and has no session.

        `overflow` is the refusal that this request has just met. Raises
        ContextBudgetExceeded if it can never fit.
        """
        return stateless.fit_stateless_request(model, request, refusal=overflow)

    def shorten_request(
        self, model: AiModel, request: Request, *, limit_tokens: int
    ) -> FittedRequest | None:
        """Return the request without its oldest messages, or None."""
        return stateless.shorten_request(model, request, limit_tokens=limit_tokens)

    def estimate_request(self, model: AiModel, request: Request) -> int:
        """Return the estimated tokens of a request without a session."""
        return stateless.estimate_request(model, request)

    def learn_from_answer(
        self,
        model: AiModel,
        request: Request,
        *,
        counted_tokens: int | None = None,
        window: int | None = None,
    ) -> None:
        """Learn from the provider's count of an answered request, and the window it showed."""
        if counted_tokens is not None:
            stateless.learn_token_count(model, request, counted_tokens)
        if window is not None:
            stateless.learn_window(model, window)

    def list_policies(self) -> Mapping[str, AskedPolicy]:
        """Return all usable policies by their names, presets first."""
        return {
            name: AskedPolicy(name, policy) for name, policy in policies.list_policies().items()
        }

    def choose_policy(self, *names: str) -> AskedPolicy:
        """Return the policy that acts where these are asked for, the first first.

        A preset takes no query.
        """
        return AskedPolicy(*policies.choose_policy(*names))

    def measure_load(self) -> CompactionLoad:
        """Return the work that waits and runs on all machines."""
        return workload.measure_load()

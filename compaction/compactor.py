"""Answer Chatcore during a conversation: the class that CHATCORE["COMPACTOR"] names."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from chatcore.context.compactor import FittedRequest
from chatcore.models import Session
from chatcore.providers.base import Request
from chatcore.providers.errors import ContextOverflow
from compaction import known_texts, policies
from compaction.core.groups.recall import RecallKnobs
from compaction.ledger import history as ledger_history
from compaction.ledger import rules as ledger_rules
from compaction.ledger import transfer as ledger_transfer
from compaction.requests import guard, on_demand, recall, stateless, tool_output
from compaction.requests.on_demand import CompactionReport
from compaction.requests.tool_output import TruncatedOutput
from compaction.runs import load, switch
from compaction.runs.load import CompactionLoad
from compaction.sizing import calibration
from compaction.summaries import leaf_transfer
from compaction.triggers import on_change
from models_registry.models import AiModel


class Compactor:
    """Chatcore's way into compaction. It stores nothing between calls and only delegates.

    All methods are synchronous. Those whose name begins with `on_` run inside the caller's open
    transaction and must be fast, and so may `truncate_tool_output`. The others run outside any
    transaction, because they may call a language model.
    """

    def before_request(self, session: Session, request: Request) -> FittedRequest:
        """Return the request that fits the session's context window.

        Raises ContextBudgetExceeded if the request can never fit.
        """
        return guard.fit_request(session, request)

    def preview_request(self, session: Session, request: Request) -> FittedRequest:
        """Return what `before_request` would send now. Nothing is stored, no model is called."""
        return guard.preview_request(session, request)

    def preview_switch(self, session: Session, *, provider: str, model: str) -> int:
        """Return how many messages would be summarized before a request to another model."""
        return switch.count_messages_to_summarize(session.pk, provider=provider, model=model)

    def after_overflow(self, session: Session, request: Request, error: ContextOverflow) -> bool:
        """Make room after a refusal for length; return True if sending again is worthwhile."""
        return guard.make_room_after_refusal(session, request, error)

    def on_messages_deleted(self, session: Session, seqs: Collection[int]) -> None:
        """Forget everything that was written from these messages, which are being deleted."""
        on_change.forget_messages(session.pk, seqs)

    def on_messages_superseded(self, session: Session, seqs: Collection[int]) -> None:
        """Revert what was derived from these superseded or restored messages."""
        on_change.supersede_messages(session.pk, seqs)

    def on_session_forked(self, source: Session, fork: Session, last_seq: int) -> None:
        """Copy state and ledger up to the message `last_seq` from `source` to its fork."""
        on_change.copy_state_to_fork(source.pk, fork.pk, last_seq=last_seq)

    def refresh_background(self, session: Session) -> None:
        """Put the standing rules of the session's owner beside its summary, as they are now."""
        ledger_rules.refresh_session(session)

    def export_ledger(self, session: Session) -> Sequence[Mapping[str, Any]]:
        """Return the lines of the ledger that a person wrote, changed, pinned or dropped."""
        return ledger_transfer.export_lines(session.pk)

    def import_ledger(self, session: Session, lines: Sequence[Any]) -> None:
        """Store exported lines of a ledger. Raises ValidationError, which names the field."""
        ledger_transfer.import_lines(session.pk, lines)

    def export_leaves(self, session: Session) -> Sequence[Mapping[str, Any]]:
        """Return the leaves that the session's summary is composed of."""
        return leaf_transfer.export_leaves(session.pk)

    def import_leaves(self, session: Session, leaves: Sequence[Any]) -> None:
        """Store exported leaves of a summary. Raises ValidationError, which names the field."""
        leaf_transfer.import_leaves(session.pk, leaves)

    def find_violations(self, session: Session) -> Collection[str]:
        """Return a sentence for each line of the ledger that does not follow its message."""
        return ledger_history.find_violations(session.pk)

    def estimate_tokens(self, session: Session) -> int:
        """Return the tokens of the session's next request; 0 if the session is deleted."""
        return guard.estimate_next_request(session.pk)

    def plan_recall(self, session: Session) -> RecallKnobs | None:
        """Return the knobs of the session's policy for recall; None if it brings nothing back."""
        return recall.choose_recall(session)

    def compact_session(
        self, session: Session, *, instructions: str = ""
    ) -> CompactionReport | None:
        """Compact the session now and return how that ended; None if it is deleted."""
        return on_demand.compact_session(session.pk, instructions=instructions)

    def measure_load(self) -> CompactionLoad:
        """Return the work that waits and runs on all machines."""
        return load.measure_load()

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

    def learn_window(self, model: AiModel, request: Request, tokens: int) -> None:
        """Learn that a model takes no more than so many tokens."""
        stateless.learn_window(model, request, tokens)

    def forget_window(self, model: AiModel) -> None:
        """Forget the window that refusals of a model have shown."""
        calibration.forget_window(str(model))

    def estimate_request(self, model: AiModel, request: Request) -> int:
        """Return the estimated tokens of a request without a session."""
        return stateless.estimate_request(model, request)

    def learn_token_count(self, model: AiModel, request: Request, tokens: int) -> None:
        """Learn from the provider's count of a request without a session."""
        stateless.learn_token_count(model, request, tokens)

    def list_policies(self) -> Sequence[str]:
        """Return the names of all usable policies, presets first."""
        return list(policies.list_policies())

    def accepts_policy(self, name: str) -> bool:
        """Return True if there is a usable policy of this name."""
        return name in policies.list_policies()

    def choose_policy_name(self, *policy_names: str) -> str:
        """Return the name of the policy that acts where these are asked for, the first first."""
        return policies.choose_policy(*policy_names)[0]

    def is_known_text(self, text: str, *, original: str = "") -> bool:
        """Return True if a policy writes this text, or could write it in the original's place."""
        return known_texts.is_known_text(text, original=original)

    def validate_threshold_override(self, threshold: float, *policy_names: str) -> None:
        """Refuse a session's own threshold if its policy cannot use it.

        The policy is the first of these names that is set. Raises ValidationError, which names the
        field.
        """
        policies.validate_threshold_override(threshold, *policy_names)

    def truncate_tool_output(self, session: Session, tool_name: str, text: str) -> TruncatedOutput:
        """Return the part of a tool's output that the session's policy stores. Never raises."""
        return tool_output.truncate_output(session, text)

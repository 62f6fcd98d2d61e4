"""Answer the host during a conversation: the class that CHATCORE["COMPACTOR"] names."""

from collections.abc import Collection, Sequence
from typing import Any

from compaction import policies
from compaction.backends.base import HostRefusal, HostSession
from compaction.requests import guard, stateless, tool_output
from compaction.requests.tool_output import TruncatedOutput
from compaction.triggers import on_change

# Requests and answers are the host's own types. Compaction must not import them, and hands them
# back as its backend made them. `Any` lets this class satisfy the host's protocol without naming
# them.
Request = Any
FittedRequest = Any


class Compactor:
    """The host's way into compaction. It stores nothing between calls and only delegates.

    All methods are synchronous. Those whose name begins with `on_` run inside the host's open
    transaction and must be fast, and so may `truncate_tool_output`. The others run outside any
    transaction, because they may call a language model.
    """

    def before_request(self, session: HostSession, request: Request) -> FittedRequest:
        """Return the host's answer with a request that fits the session's context window.

        Raises the host's overflow error if the request can never fit.
        """
        return guard.fit_request(session, request)

    def after_overflow(self, session: HostSession, request: Request, error: HostRefusal) -> bool:
        """Make room after a refusal for length; return True if sending again is worthwhile."""
        return guard.make_room_after_refusal(session, request, error)

    def on_messages_deleted(self, session: HostSession, seqs: Collection[int]) -> None:
        """Forget everything that was written from these messages, which are being deleted."""
        on_change.forget_messages(session.pk, seqs)

    def on_messages_superseded(self, session: HostSession, seqs: Collection[int]) -> None:
        """Revert the structured state that was made from these superseded or restored messages."""
        on_change.revert_derived_state(session.pk, seqs)

    def on_session_forked(self, source: HostSession, fork: HostSession, last_seq: int) -> None:
        """Copy the structured state up to the message `last_seq` from `source` to its fork."""
        on_change.copy_state_to_fork(source.pk, fork.pk, last_seq=last_seq)

    def estimate_tokens(self, session: HostSession) -> int:
        """Return the tokens of the session's next request; 0 if the session is deleted."""
        return guard.estimate_next_request(session.pk)

    def fit_request(
        self, model: object, request: Request, *, overflow: HostRefusal | None = None
    ) -> FittedRequest:
        """Return the host's answer with a request that fits a model and has no session.

        `overflow` is the refusal that this request has just met. Raises the host's overflow error
        if it can never fit.
        """
        return stateless.fit_stateless_request(model, request, refusal=overflow)

    def learn_token_count(self, model: object, request: Request, tokens: int) -> None:
        """Learn from the provider's count of a request without a session."""
        stateless.learn_token_count(model, request, tokens)

    def list_policies(self) -> Sequence[str]:
        """Return the names of all usable policies, presets first."""
        return list(policies.list_policies())

    def accepts_policy(self, name: str) -> bool:
        """Return True if there is a usable policy of this name."""
        return name in policies.list_policies()

    def validate_threshold_override(self, threshold: float, *policy_names: str) -> None:
        """Refuse a session's own threshold if its policy cannot use it.

        The policy is the first of these names that is set. Raises ValidationError, which names the
        field.
        """
        policies.validate_threshold_override(threshold, *policy_names)

    def truncate_tool_output(
        self, session: HostSession, tool_name: str, text: str
    ) -> TruncatedOutput:
        """Return the part of a tool's output that the session's policy stores. Never raises."""
        return tool_output.truncate_output(session, text)

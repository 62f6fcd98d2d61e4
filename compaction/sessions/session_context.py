"""Load what decides about a session's compaction: its facts, policy, budget and state."""

from dataclasses import dataclass, replace
from uuid import UUID

from compaction import policies
from compaction.core.budget import Budget, plan
from compaction.core.policy import Policy
from compaction.models import SessionState
from compaction.sessions import calibration
from compaction.sessions.calibration import Calibration
from compaction.sessions.facts import SessionFacts, describe_model, load_session_facts
from compaction.sessions.queries import load_records


class NoSuchSession(Exception):
    """The session does not exist."""


@dataclass(frozen=True, kw_only=True)
class SessionContext:
    """Everything that decides about a session's compaction.

    `budget` is None where the context window is unknown. `model_calibration` holds for all sessions
    of the model. `is_summary_running` is True while a run works on the session whose start was
    announced.
    """

    facts: SessionFacts
    policy_name: str
    policy: Policy
    state: SessionState
    budget: Budget | None
    model_calibration: Calibration = calibration.NO_CALIBRATION
    is_summary_running: bool = False

    @property
    def automatic_mode(self) -> str:
        """Return whether runs start by themselves: on, off, waiting or stopped.

        They wait after a failure and after a rewind, and stop after runs that gained almost
        nothing.
        """
        if self.budget is None or not self.facts.is_automatic:
            return "off"
        if self.state.is_stopped:
            return "stopped"
        if self.facts.is_rewound or self.state.is_waiting:
            return "waiting"
        return "on"

    @property
    def has_refusal_sizes(self) -> bool:
        """Return True if a refusal's sizes are stored for the current model and window."""
        learned_for = self.state.learned_for
        return bool(learned_for) and learned_for == build_learned_key(self.facts)

    @property
    def refusal_token_ratio(self) -> float:
        """Return the real tokens for each estimated token, by a refusal; 1 without one."""
        return self.state.learned_scale if self.has_refusal_sizes else 1.0


def load_session_context(
    session_id: UUID,
    *,
    policy: tuple[str, Policy] | None = None,
    provider: str = "",
    model: str = "",
) -> SessionContext | None:
    """Return a session's context in a handful of queries; None if the session is deleted.

    `policy`, a name and a policy, replaces the session's own policy and threshold. `provider` and
    `model` replace its language model.
    """
    facts = load_session_facts(session_id)
    if facts is None:
        return None
    if provider or model:
        facts = describe_model(facts, provider=provider, model=model)
    is_automatic = facts.is_automatic and policies.is_compaction_automatic()
    policy_name, active_policy = policy or policies.choose_policy(facts.policy, facts.model.policy)
    threshold = None if policy else _choose_threshold(facts)
    if isinstance(threshold, float):
        active_policy = policies.apply_threshold(active_policy, threshold)
    records = load_records(session_id, facts.model.name)
    context = SessionContext(
        facts=replace(facts, is_automatic=is_automatic),
        policy_name=policy_name,
        policy=active_policy,
        state=records.state,
        budget=None,
        model_calibration=calibration.build_calibration(records.ratio, facts.model.window),
        is_summary_running=records.is_summary_running,
    )
    context = replace(context, budget=plan_budget(context))
    if isinstance(threshold, int) and context.budget is not None:
        # The budget is needed to convert tokens to a share, so it is planned twice.
        active_policy = policies.apply_token_threshold(active_policy, threshold, context.budget)
        context = replace(context, policy=active_policy)
        context = replace(context, budget=plan_budget(context))
    return context


def build_learned_key(facts: SessionFacts) -> str:
    """Return the model and window that a refusal's sizes belong to.

    The sizes are void once the model changes, or once an operator corrects its window.
    """
    return f"{facts.model.name} {facts.model.window}"


def plan_budget(context: SessionContext) -> Budget | None:
    """Return the budget of the policy in the session's window.

    It is None if the window is unknown and the policy does not guess one.
    """
    facts = context.facts
    return plan(
        context.policy,
        _find_window(context),
        max_input=facts.model.max_input,
        output_reserve=facts.model.output_reserve,
        max_tokens=facts.max_tokens,
        family=facts.model.family,
    )


def _choose_threshold(facts: SessionFacts) -> float | int | None:
    """Return the session's own threshold or the project's: a share, or a number of tokens."""
    threshold = facts.compact_threshold
    if threshold is not None:
        return int(threshold) if threshold > 1 else threshold
    return policies.get_project_threshold()


def _find_window(context: SessionContext) -> int | None:
    """Return the registry's window, or a smaller one that a refusal showed."""
    facts = context.facts
    learned_windows = [context.model_calibration.window]
    if context.has_refusal_sizes:
        learned_windows.append(context.state.learned_window)
    smallest_window = min((window for window in learned_windows if window), default=None)
    if facts.model.window:
        return min(facts.model.window, smallest_window or facts.model.window)
    return smallest_window

"""How a session stands: its policy and budget, what its past runs mean for the next, and how large its next request is."""

from dataclasses import dataclass, replace
from uuid import UUID

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.backends.base import STORED_CHARS_PER_TOKEN, SessionFacts
from compaction.core.attachments import compute_file_budget
from compaction.core.budget import Budget, assume_window, plan
from compaction.core.counting import build_counter
from compaction.core.estimate import (
    LastUsage,
    Measurement,
    calibrate_estimate,
    estimate_characters,
    estimate_transcript,
    measure,
)
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.core.transcript import Transcript
from compaction.models import SessionState
from compaction.sizing import calibration, queries
from compaction.sizing.calibration import Calibration


class NoSuchSession(Exception):
    """The session does not exist."""


@dataclass(frozen=True, kw_only=True)
class SessionContext:
    """All that decides about a session's compaction, read in a handful of queries. `budget` is None where its window is unknown.

    `experience` is of its model, whatever the session.
    """

    facts: SessionFacts
    policy_name: str
    policy: Policy
    state: SessionState
    budget: Budget | None
    model_calibration: Calibration = calibration.NO_CALIBRATION

    @property
    def automatic_mode(self) -> str:
        """Whether runs start by themselves: on, off, waiting (after a failure or a rewind) or stopped (they gained nothing)."""
        if self.budget is None or not self.facts.is_automatic:
            return "off"
        if self.state.is_stopped:
            return "stopped"
        return "waiting" if self.facts.is_rewound or self.state.is_waiting else "on"

    @property
    def has_refusal_sizes(self) -> bool:
        """Whether what a refusal told still holds: same model, same window in the registry."""
        return bool(self.state.learned_for) and self.state.learned_for == build_learned_key(
            self.facts
        )

    @property
    def refusal_token_ratio(self) -> float:
        """Real tokens to an estimated one, as a refusal told this session; 1 where none did."""
        return self.state.learned_scale if self.has_refusal_sizes else 1.0


def load_session_context(
    session_id: UUID, *, policy: tuple[str, Policy] | None = None
) -> SessionContext | None:
    """How a session stands, under its own policy and threshold or the policy given. None when the session is gone."""
    facts = backend_registry.get_backend().load_session_facts(session_id)
    if facts is None:
        return None
    facts = replace(facts, is_automatic=facts.is_automatic and policies.is_compaction_automatic())
    policy_name, session_policy = policy or policies.choose_policy(facts.policy, facts.model_policy)
    if policy is None:
        session_threshold = facts.compact_threshold
        session_policy = policies.apply_threshold(
            session_policy,
            policies.get_project_threshold() if session_threshold is None else session_threshold,
        )
    model_calibration = calibration.load_calibration(facts.model, facts.window)
    context = SessionContext(
        facts=facts,
        policy_name=policy_name,
        policy=session_policy,
        state=queries.load_session_state(session_id),
        budget=None,
        model_calibration=model_calibration,
    )
    context = replace(context, budget=plan_budget(context))
    if policy is None and context.budget and facts.compact_threshold is None:
        context = replace(
            context, policy=policies.apply_token_threshold(session_policy, context.budget)
        )
        context = replace(context, budget=plan_budget(context))
    return context


def build_learned_key(facts: SessionFacts) -> str:
    """What learned numbers belong to; an operator who corrects the window makes them void."""
    return f"{facts.model} {facts.window}"


def measure_next_request(context: SessionContext) -> Measurement:
    """The size of the next request without reading a message: the last usage and sums of stored estimates.

    What a policy counts by a text itself (code, features) is taken for plain text here.
    """
    policy = context.policy
    last_usage = (
        None
        if policy.estimate.calibration == "none"
        else backend_registry.get_backend().load_last_usage(context.facts)
    )
    token_ratio = context.refusal_token_ratio
    if last_usage is None:
        plain_estimate = (
            estimate_plain_tokens(context) if context.model_calibration.ratio > 1 else 0
        )
        return _apply_model_calibration(
            context,
            _estimate_whole_request(context),
            plain_estimate=plain_estimate,
            token_ratio=token_ratio,
        )
    if policy.estimate.calibration == "last_usage" and token_ratio <= 1:
        return Measurement(
            tokens=last_usage.tokens + _estimate_unseen(context, last_usage), source="provider"
        )
    estimate = _estimate_whole_request(context)
    return (
        Measurement(tokens=int(estimate * token_ratio))
        if token_ratio > 1
        else _calibrate_estimate(context, estimate, last_usage)
    )


def measure_transcript(
    context: SessionContext, transcript: Transcript, last_usage: LastUsage | None
) -> Measurement:
    """The same of a transcript in hand, and how many real tokens an estimated one stands for."""
    result, token_ratio = (
        measure(transcript, context.policy, last_usage),
        context.refusal_token_ratio,
    )
    if token_ratio > 1:
        tokens = int(estimate_transcript(transcript, context.policy) * token_ratio)
        return replace(
            result,
            tokens=max(result.tokens, tokens),
            token_ratio=max(result.token_ratio, token_ratio),
        )
    if last_usage is not None or context.model_calibration.ratio <= 1:
        return result
    bare_transcript = replace(
        transcript,
        overhead_tokens=0,
        entries=tuple(replace(entry, tokens=0) for entry in transcript.entries),
    )
    return _apply_model_calibration(
        context, result.tokens, plain_estimate=estimate_transcript(bare_transcript, ONECLAW)
    )


def estimate_fixed_tokens(context: SessionContext) -> int:
    """Estimated tokens of what stands around the messages, as far as the policy counts it: system prompt, tools, summary."""
    return sum(estimate_fixed_parts(context).values())


def estimate_fixed_parts(context: SessionContext) -> dict[str, int]:
    """The same by its parts."""
    facts, policy = context.facts, context.policy
    token_counter = build_counter(policy, facts.family)
    return {
        "system_prompt": estimate_text_tokens(context, facts.system_chars)
        if policy.estimate.count_system
        else 0,
        "summary": (token_counter.count_text(facts.summary) if facts.summary else 0)
        + estimate_text_tokens(context, facts.reference_chars),
        "tool_definitions": token_counter.count_characters(facts.tool_chars, ignore_factor=True)
        if facts.tool_chars and policy.estimate.count_tools
        else 0,
    }


def estimate_attachments(context: SessionContext) -> int:
    """Estimated tokens of the files of live messages, as far as they are sent: texts take no more than their share of the window."""
    facts, budget, knobs = context.facts, context.budget, context.policy.files
    text_tokens = recount_tokens(context, facts.attached_tokens)
    if text_tokens and budget is not None:
        text_tokens = min(
            text_tokens,
            compute_file_budget(
                budget.window,
                estimate_fixed_tokens(context),
                budget.window - budget.input,
                knobs.budget_ratio,
            ),
        )
    return text_tokens + facts.attached_images * context.policy.estimate.image_tokens


def estimate_text_tokens(context: SessionContext, characters: int) -> int:
    """Tokens of a text of so many characters; none for none."""
    return (
        estimate_characters(characters, context.policy, context.facts.family) if characters else 0
    )


def recount_tokens(context: SessionContext, stored_tokens: int, message_count: int = 0) -> int:
    """A sum of stored estimates of so many messages, in the policy's tokens, with what framing these costs."""
    if not stored_tokens and not message_count:
        return 0
    knobs = context.policy.estimate
    if counts_like_host(context.policy):
        return stored_tokens
    return (
        estimate_text_tokens(
            context,
            stored_tokens * STORED_CHARS_PER_TOKEN + message_count * knobs.per_message_chars,
        )
        + message_count * knobs.per_message
    )


def drop_foreign_counts(transcript: Transcript, policy: Policy) -> Transcript:
    """The transcript to be counted by the policy: stored counts are dropped where it counts otherwise, and where more than text is sent."""
    keeps_counts = counts_like_host(policy)
    entries = tuple(
        entry
        if keeps_counts and entry.original is None and not entry.images
        else replace(entry, tokens=0)
        for entry in transcript.entries
    )
    return replace(transcript, entries=entries)


def counts_like_host(policy: Policy) -> bool:
    """Whether the policy counts the text of a message as the host stores it."""
    policy_knobs, host_knobs = policy.estimate, ONECLAW.estimate
    knob_names = (
        "method",
        "chars_per_token",
        "code_chars_per_token",
        "rounding",
        "per_message",
        "per_message_chars",
        "safety_multiplier",
    )
    return (
        all(getattr(policy_knobs, name) == getattr(host_knobs, name) for name in knob_names)
        and not policy_knobs.family_multiplier
    )


def estimate_plain_tokens(context: SessionContext, *, before_seq: int | None = None) -> int:
    """The size of the next request, or of one that ended before a message, at STORED_CHARS_PER_TOKEN, whatever the policy."""
    facts = context.facts
    overhead_tokens = (
        facts.system_chars + facts.tool_chars + len(facts.summary or "") + facts.reference_chars
    ) // STORED_CHARS_PER_TOKEN
    return (
        overhead_tokens
        + facts.attached_tokens
        + backend_registry.get_backend().sum_message_tokens(facts, before_seq=before_seq)
    )


def plan_budget(context: SessionContext) -> Budget | None:
    """The budget of its policy and its window; None where that is unknown and the policy does not guess."""
    facts = context.facts
    return plan(
        context.policy,
        _find_window(context),
        output_reserve=facts.output_reserve,
        max_tokens=facts.max_tokens,
        family=facts.family,
    )


def _find_window(context: SessionContext) -> int | None:
    """The registry's, or less where a refusal told so. An unknown one may be told too, where the policy compacts without knowing."""
    facts = context.facts
    learned_windows = [
        context.model_calibration.window,
        context.state.learned_window if context.has_refusal_sizes else None,
    ]
    smallest_window = min((window for window in learned_windows if window), default=None)
    if facts.window:
        return min(facts.window, smallest_window or facts.window)
    return smallest_window if assume_window(context.policy, facts.family) else None


def _estimate_whole_request(context: SessionContext) -> int:
    """The estimate of the whole request under the policy."""
    backend, facts, knobs = backend_registry.get_backend(), context.facts, context.policy.estimate
    has_framing = knobs.per_message or knobs.per_message_chars
    message_count = backend.count_live_messages(facts) if has_framing else 0
    message_tokens = recount_tokens(context, backend.sum_message_tokens(facts), message_count)
    return (
        knobs.per_conversation
        + estimate_fixed_tokens(context)
        + estimate_attachments(context)
        + message_tokens
    )


def _estimate_unseen(context: SessionContext, last_usage: LastUsage) -> int:
    """What came after the last call."""
    facts = context.facts
    return recount_tokens(
        context,
        backend_registry.get_backend().sum_message_tokens(facts, after_seq=last_usage.after_seq),
        max(0, facts.last_seq - last_usage.after_seq),
    )


def _calibrate_estimate(
    context: SessionContext, estimate: int, last_usage: LastUsage
) -> Measurement:
    return calibrate_estimate(
        context.policy,
        total_estimate=estimate,
        newer_estimate=_estimate_unseen(context, last_usage),
        last_usage=last_usage,
    )


def _apply_model_calibration(
    context: SessionContext, estimate: int, *, plain_estimate: int, token_ratio: float = 1.0
) -> Measurement:
    """An estimate where no count stands: what this model has taught may make it larger, never smaller."""
    if context.policy.estimate.calibration != "none":
        token_ratio = max(
            token_ratio, context.model_calibration.ratio * plain_estimate / max(1, estimate)
        )
    return (
        Measurement(tokens=int(estimate * token_ratio), token_ratio=token_ratio)
        if token_ratio > 1
        else Measurement(tokens=estimate)
    )

"""Measure a session's next request in tokens, from stored sums or from a transcript."""

from dataclasses import replace
from typing import Literal

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.events.types import ContextUsagePayload
from compaction.core.attachments import compute_file_budget
from compaction.core.budget import Budget
from compaction.core.estimate import (
    LastUsage,
    Measurement,
    build_counter,
    calibrate_estimate,
    estimate_transcript,
    measure,
)
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.core.transcript import Transcript, TranscriptEntry, change_entry
from compaction.sessions.facts import count_live_messages, sum_message_tokens
from compaction.sessions.session_context import SessionContext

# A policy whose values for these knobs are ONECLAW's counts a message's text as it is stored.
TEXT_KNOBS = (
    "method",
    "chars_per_token",
    "code_chars_per_token",
    "rounding",
    "per_message",
    "per_message_chars",
    "safety_multiplier",
)

WARNING_RATIO = 0.8  # of the threshold
LEAST_ANSWER_TOKENS = 1_024

BREAKDOWN_PARTS = (
    "system_prompt",
    "summary",
    "conversation_history",
    "current_prompt",
    "tool_definitions",
    "file_attachments",
)


def measure_next_request(context: SessionContext) -> Measurement:
    """Return the size of the next request, from the last usage and sums of stored estimates.

    No message is loaded, so a policy that counts by the text itself (code, features) counts plain
    text here.
    """
    calibration_kind = context.policy.estimate.calibration
    last_usage = context.facts.last_usage if calibration_kind != "none" else None
    refusal_ratio = context.refusal_token_ratio
    if last_usage is None:
        return _measure_without_usage(context)
    if calibration_kind == "last_usage" and refusal_ratio <= 1:
        newer_tokens = _estimate_newer_messages(context, last_usage)
        return Measurement(tokens=last_usage.tokens + newer_tokens, source="provider")
    estimate = _estimate_total(context)
    if refusal_ratio > 1:
        return Measurement(tokens=int(estimate * refusal_ratio))
    return calibrate_estimate(
        context.policy,
        total_estimate=estimate,
        newer_estimate=_estimate_newer_messages(context, last_usage),
        last_usage=last_usage,
    )


def measure_transcript(
    context: SessionContext, transcript: Transcript, last_usage: LastUsage | None
) -> Measurement:
    """Return the size of a transcript, and how many real tokens an estimated token stands for."""
    measurement = measure(transcript, context.policy, last_usage)
    refusal_ratio = context.refusal_token_ratio
    if refusal_ratio > 1:
        tokens = int(estimate_transcript(transcript, context.policy) * refusal_ratio)
        return replace(
            measurement,
            tokens=max(measurement.tokens, tokens),
            token_ratio=max(measurement.token_ratio, refusal_ratio),
        )
    if last_usage is not None or context.model_calibration.ratio <= 1:
        return measurement
    # The model's ratio refers to plain estimates, so every message is counted again by its text.
    plain_counter = build_counter(ONECLAW, transcript.family)
    message_tokens = sum(map(plain_counter.count_entry, transcript.entries))
    plain_transcript = replace(transcript, overhead_tokens=0)
    return _apply_model_calibration(
        context,
        measurement.tokens,
        plain_estimate=message_tokens + estimate_transcript(plain_transcript, ONECLAW, ()),
    )


def estimate_fixed_tokens(context: SessionContext) -> int:
    """Return the estimated tokens of system prompt, tools and summary that the policy counts."""
    return sum(estimate_fixed_parts(context).values())


def estimate_fixed_parts(context: SessionContext) -> dict[str, int]:
    """Return the estimated tokens of system_prompt, summary and tool_definitions."""
    facts = context.facts
    knobs = context.policy.estimate
    token_counter = build_counter(context.policy, facts.model.family)
    system_tokens = 0
    if knobs.count_system:
        system_tokens = estimate_text_tokens(context, facts.sizes.system_chars)
    summary_tokens = estimate_text_tokens(context, facts.sizes.reference_chars)
    if facts.summary:
        summary_tokens += token_counter.count_text(facts.summary)
    tool_tokens = 0
    if facts.sizes.tool_chars and knobs.count_tools:
        tool_tokens = token_counter.count_characters(facts.sizes.tool_chars, ignore_factor=True)
    return {
        "system_prompt": system_tokens,
        "summary": summary_tokens,
        "tool_definitions": tool_tokens,
    }


def estimate_attachments(context: SessionContext) -> int:
    """Return the estimated tokens of the files of live messages, as far as they are sent.

    Text files take no more than their share of the window.
    """
    budget = context.budget
    text_tokens = recount_tokens(context, context.facts.sizes.attached_tokens)
    if text_tokens and budget is not None:
        file_budget = compute_file_budget(
            budget.window,
            estimate_fixed_tokens(context),
            budget.window - budget.input,
            context.policy.files.budget_ratio,
        )
        text_tokens = min(text_tokens, file_budget)
    return text_tokens + context.facts.sizes.attached_images * context.policy.estimate.image_tokens


def estimate_recalled(context: SessionContext) -> int:
    """Return the estimated tokens of what the open turn brought back from before the boundary."""
    return estimate_text_tokens(context, context.facts.sizes.recalled_chars)


def estimate_text_tokens(context: SessionContext, characters: int) -> int:
    """Return the estimated tokens of a text of this length; 0 for an empty one."""
    if not characters:
        return 0
    token_counter = build_counter(context.policy, context.facts.model.family)
    return token_counter.count_characters(characters)


def recount_tokens(context: SessionContext, stored_tokens: int, message_count: int = 0) -> int:
    """Convert a sum of stored estimates to the policy's tokens, framing included."""
    if not stored_tokens and not message_count:
        return 0
    if counts_like_host(context.policy):
        return stored_tokens
    knobs = context.policy.estimate
    framing_chars = message_count * knobs.per_message_chars
    text_tokens = estimate_text_tokens(
        context, stored_tokens * CHARS_PER_TOKEN_ESTIMATE + framing_chars
    )
    return text_tokens + message_count * knobs.per_message


def recount_transcript(transcript: Transcript, policy: Policy) -> Transcript:
    """Return the transcript with every message counted as the policy counts.

    A stored count is kept if the policy counts in the same way; but not that of a message that
    has images, or is shown in another form than the stored one.
    """
    keeps_counts = counts_like_host(policy)
    token_counter = build_counter(policy, transcript.family)

    def recount_entry(entry: TranscriptEntry) -> TranscriptEntry:
        if keeps_counts and entry.tokens and entry.original is None and not entry.images:
            return entry
        return change_entry(entry, tokens=token_counter.count_entry(entry))

    return replace(transcript, entries=tuple(map(recount_entry, transcript.entries)))


def counts_like_host(policy: Policy) -> bool:
    """Return True if the policy counts the text of a message as it is stored."""
    if policy.estimate.family_multiplier:
        return False
    return all(
        getattr(policy.estimate, name) == getattr(ONECLAW.estimate, name) for name in TEXT_KNOBS
    )


def estimate_plain_tokens(context: SessionContext, *, before_seq: int | None = None) -> int:
    """Return the size of the next request at CHARS_PER_TOKEN_ESTIMATE, whatever the policy.

    With `before_seq` it is the size of the request that this message answered.
    """
    facts = context.facts
    overhead_chars = facts.sizes.chars + len(facts.summary or "")
    message_tokens = sum_message_tokens(facts, before_seq=before_seq)
    return overhead_chars // CHARS_PER_TOKEN_ESTIMATE + facts.sizes.attached_tokens + message_tokens


def _measure_without_usage(context: SessionContext) -> Measurement:
    """Measure a context whose size no provider has counted yet."""
    estimate = _estimate_total(context)
    plain_estimate = 0
    if context.model_calibration.ratio > 1:
        plain_estimate = estimate_plain_tokens(context)
    return _apply_model_calibration(
        context, estimate, plain_estimate=plain_estimate, token_ratio=context.refusal_token_ratio
    )


def _estimate_total(context: SessionContext) -> int:
    """Return the policy's estimate of the next request with everything in it."""
    knobs = context.policy.estimate
    message_count = 0
    if knobs.per_message or knobs.per_message_chars:
        message_count = count_live_messages(context.facts)
    stored_tokens = sum_message_tokens(context.facts)
    return (
        knobs.per_conversation
        + estimate_fixed_tokens(context)
        + estimate_attachments(context)
        + estimate_recalled(context)
        + recount_tokens(context, stored_tokens, message_count)
    )


def _estimate_newer_messages(context: SessionContext, last_usage: LastUsage) -> int:
    """Return the policy's estimate of the messages after the last call."""
    facts = context.facts
    stored_tokens = sum_message_tokens(facts, after_seq=last_usage.after_seq)
    message_count = max(0, facts.last_seq - last_usage.after_seq)
    return recount_tokens(context, stored_tokens, message_count)


def _apply_model_calibration(
    context: SessionContext, estimate: int, *, plain_estimate: int, token_ratio: float = 1.0
) -> Measurement:
    """Correct an estimate by the model's ratio; this makes it larger, never smaller.

    A request that is estimated too small fails at the provider. One that is estimated too large is
    only compacted early.
    """
    if context.policy.estimate.calibration != "none":
        model_ratio = context.model_calibration.ratio * plain_estimate / max(1, estimate)
        token_ratio = max(token_ratio, model_ratio)
    if token_ratio <= 1:
        return Measurement(tokens=estimate)
    return Measurement(tokens=int(estimate * token_ratio), token_ratio=token_ratio)


def describe_usage(context: SessionContext) -> ContextUsagePayload:
    """Return the fields of `GET /sessions/{id}/context`. Sizes are tokens.

    What depends on an unknown window is None.
    """
    measurement = measure_next_request(context)
    tokens, budget = measurement.tokens, context.budget
    return {
        "estimated_input_tokens": tokens,
        "source": measurement.source,
        "available_input_tokens": budget.input if budget else None,
        "context_window": budget.window if budget else None,
        "threshold_tokens": budget.threshold if budget else None,
        "usage_ratio": round(tokens / max(1, budget.input), 4) if budget else None,
        "should_compact": bool(budget and budget.is_over(tokens)),
        "level": _choose_level(budget, tokens) if budget else None,
        "window_source": _find_window_source(context),
        "message_count": context.facts.message_count,
        "live_message_count": count_live_messages(context.facts),
        "breakdown": _build_breakdown(context, tokens),
        "policy": context.policy_name,
        "automatic": context.automatic_mode,
        "compacting": context.is_summary_running,
        "next_request": _foresee_next_request(context, tokens),
    }


def find_answer_space(context: SessionContext) -> int:
    """Return the least room for an answer, in tokens: no more than a tenth of the window.

    It is 0 where the registry says that answers do not count, or limits requests by themselves.
    """
    budget = context.budget
    if budget is None or context.facts.model.output_reserve == 0:
        return 0
    space = min(LEAST_ANSWER_TOKENS, budget.window // 10)
    return max(0, space - (budget.window - budget.request_limit))


def _foresee_next_request(
    context: SessionContext, tokens: int
) -> Literal["complete", "summarized", "trimmed"]:
    """Return what is done to the next request: see ContextSerializer.

    A summary is not promised after a failed run, although it is tried once more: until then
    requests of the session are trimmed.
    """
    budget, state = context.budget, context.state
    if budget is None or context.automatic_mode == "off" or not budget.is_over(tokens):
        return "complete"
    is_over_window = tokens > budget.request_limit - find_answer_space(context)
    phases = context.policy.trigger.phases
    summarizes = "before_request" in phases or (is_over_window and "on_overflow" in phases)
    if summarizes and not (state.is_stopped or state.is_waiting or state.failures):
        return "summarized"
    is_trimmed = context.policy.fallback.kind != "error" and (is_over_window or state.trimming)
    return "trimmed" if is_trimmed else "complete"


def _find_window_source(context: SessionContext) -> Literal["registry", "learned"] | None:
    """Return where the window is from: the registry, or a refusal; None where it is unknown."""
    if context.budget is None:
        return None
    has_learned = context.model_calibration.window is not None or context.has_refusal_sizes
    is_other = context.budget.window != context.facts.model.window
    return "learned" if is_other and has_learned else "registry"


def _choose_level(budget: Budget, tokens: int) -> Literal["ok", "warning", "critical"]:
    if budget.is_over(tokens):
        return "critical"
    return "warning" if tokens >= WARNING_RATIO * budget.threshold else "ok"


def _build_breakdown(context: SessionContext, tokens: int) -> dict[str, int]:
    """Split the measured tokens into parts.

    The parts are estimates of now, in proportion to the measured size, so that they add up to it. A
    provider's count is of the last call, and since then system text and tools may have another
    size: the history is not what their new sizes leave of the old count.
    """
    # What a turn brings back stands beside the prompt that asked for it.
    prompt_tokens = recount_tokens(context, context.facts.newest_prompt_tokens)
    parts = {
        **estimate_fixed_parts(context),
        "current_prompt": prompt_tokens + estimate_recalled(context),
        "file_attachments": estimate_attachments(context),
    }
    total = max(_estimate_total(context), sum(parts.values()))
    parts = {name: part * tokens // max(1, total) for name, part in parts.items()}
    parts["conversation_history"] = tokens - sum(parts.values())
    return {name: parts[name] for name in BREAKDOWN_PARTS}

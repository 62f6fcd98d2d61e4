"""Describe how full a session's context is, for the meter, the API and events."""

from typing import Any, Literal
from uuid import UUID

from compaction.core.budget import Budget
from compaction.sessions import request_size, session_context
from compaction.sessions.facts import count_live_messages
from compaction.sessions.session_context import NoSuchSession, SessionContext

WARNING_RATIO = 0.8  # of the threshold

BREAKDOWN_PARTS = (
    "system_prompt",
    "summary",
    "conversation_history",
    "current_prompt",
    "tool_definitions",
    "file_attachments",
)


def load_usage(session_id: UUID) -> dict[str, Any]:
    """Return the fields of `GET /sessions/{id}/context`; no message is loaded.

    Sizes are tokens. What depends on an unknown window is None. Raises NoSuchSession.
    """
    context = session_context.load_session_context(session_id)
    if context is None:
        raise NoSuchSession(str(session_id))
    return describe_usage(context)


def describe_usage(context: SessionContext) -> dict[str, Any]:
    """Return what `load_usage` returns, for a context that is already loaded."""
    measurement = request_size.measure_next_request(context)
    return {
        "estimated_input_tokens": measurement.tokens,
        "source": measurement.source,
        **_compare_with_window(context.budget, measurement.tokens),
        "window_source": _find_window_source(context),
        "message_count": context.facts.message_count,
        "live_message_count": count_live_messages(context.facts),
        "breakdown": _build_breakdown(context, measurement.tokens),
        "policy": context.policy_name,
        "automatic": context.automatic_mode,
        "compacting": context.is_summary_running,
    }


def _compare_with_window(budget: Budget | None, tokens: int) -> dict[str, object]:
    if budget is None:
        return {
            "should_compact": False,
            "available_input_tokens": None,
            "context_window": None,
            "threshold_tokens": None,
            "usage_ratio": None,
            "level": None,
        }
    return {
        "available_input_tokens": budget.input,
        "context_window": budget.window,
        "threshold_tokens": budget.threshold,
        "usage_ratio": round(tokens / max(1, budget.input), 4),
        "should_compact": budget.is_over(tokens),
        "level": _choose_level(budget, tokens),
    }


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

    All parts are estimates except the history, which is the rest, so that the parts add up to the
    measured size wherever they can.
    """
    # What a turn brings back stands beside the prompt that asked for it.
    prompt_tokens = request_size.recount_tokens(context, context.facts.newest_prompt_tokens)
    parts = {
        **request_size.estimate_fixed_parts(context),
        "current_prompt": prompt_tokens + request_size.estimate_recalled(context),
        "file_attachments": request_size.estimate_attachments(context),
    }
    parts["conversation_history"] = max(0, tokens - sum(parts.values()))
    return {name: parts[name] for name in BREAKDOWN_PARTS}

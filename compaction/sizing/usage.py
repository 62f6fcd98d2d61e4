"""How full a session's context is: what the meter, the API and the event after each response tell. No message is loaded for it."""

from typing import Any
from uuid import UUID

from compaction.backends import registry as backend_registry
from compaction.core.budget import Budget
from compaction.sizing import queries, session_context
from compaction.sizing.session_context import NoSuchSession, SessionContext

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
    """The fields of `GET /sessions/{id}/context`, in tokens. What depends on an unknown window is null. Raises NoSuchSession."""
    context = session_context.load_session_context(session_id)
    if context is None:
        raise NoSuchSession(str(session_id))
    return describe_usage(context)


def describe_usage(context: SessionContext) -> dict[str, Any]:
    """The same of a situation in hand."""
    measurement = session_context.measure_next_request(context)
    return {
        "estimated_input_tokens": measurement.tokens,
        "source": measurement.source,
        **_compare_with_window(context.budget, measurement.tokens),
        "message_count": context.facts.message_count,
        "live_message_count": backend_registry.get_backend().count_live_messages(context.facts),
        "breakdown": _build_breakdown(context, measurement.tokens),
        "policy": context.policy_name,
        "automatic": context.automatic_mode,
        "compacting": queries.is_summary_running(context.facts.session_id),
    }


def _compare_with_window(budget: Budget | None, tokens: int) -> dict[str, Any]:
    if budget is None:
        unknown_fields = (
            "available_input_tokens",
            "context_window",
            "threshold_tokens",
            "usage_ratio",
            "level",
        )
        return {"should_compact": False, **dict.fromkeys(unknown_fields)}
    return {
        "available_input_tokens": budget.input,
        "context_window": budget.window,
        "threshold_tokens": budget.threshold,
        "usage_ratio": round(tokens / max(1, budget.input), 4),
        "should_compact": budget.is_over(tokens),
        "level": _choose_level(budget, tokens),
    }


def _choose_level(budget: Budget, tokens: int) -> str:
    if budget.is_over(tokens):
        return "critical"
    return "warning" if tokens >= WARNING_RATIO * budget.threshold else "ok"


def _build_breakdown(context: SessionContext, tokens: int) -> dict[str, int]:
    """The parts are estimates; the history is what remains of the measured whole, so that they add up to it where they can."""
    parts = {
        **session_context.estimate_fixed_parts(context),
        "current_prompt": session_context.recount_tokens(
            context, backend_registry.get_backend().load_newest_prompt_tokens(context.facts)
        ),
        "file_attachments": session_context.estimate_attachments(context),
    }
    return {name: parts.get(name, max(0, tokens - sum(parts.values()))) for name in BREAKDOWN_PARTS}

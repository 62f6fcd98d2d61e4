"""How full a session's context is: what the meter, the API and the event after each response tell. No message is loaded for it."""

from typing import Any
from uuid import UUID

from compaction.backends import registry as backend_registry
from compaction.core.budget import Budget
from compaction.models import CompactionRun
from compaction.sizing import session_context
from compaction.sizing.prepared import Prepared
from compaction.sizing.session_context import NoSuchSession, Situation

WARNING_RATIO = 0.8  # of the threshold

PARTS = (
    "system_prompt",
    "summary",
    "conversation_history",
    "current_prompt",
    "tool_definitions",
    "file_attachments",
)


def usage(session_id: UUID) -> dict[str, Any]:
    """The fields of `GET /sessions/{id}/context`, in tokens. What depends on an unknown window is null. Raises NoSuchSession."""
    now = session_context.of(session_id)
    if now is None:
        raise NoSuchSession(str(session_id))
    return of_situation(now)


def of_situation(now: Situation) -> dict[str, Any]:
    """The same of a situation in hand."""
    measured = session_context.quick_measure(now)
    return {
        "estimated_input_tokens": measured.tokens,
        "source": measured.source,
        **_against_the_window(now.budget, measured.tokens),
        "message_count": now.subject.message_count,
        "live_message_count": backend_registry.get().live_count(now.subject),
        "breakdown": _breakdown(now, measured.tokens),
        "policy": now.policy_name,
        "automatic": now.automatic,
        "compacting": _summary_is_written(now),
    }


def _against_the_window(budget: Budget | None, tokens: int) -> dict[str, Any]:
    if budget is None:
        unknown = (
            "available_input_tokens",
            "context_window",
            "threshold_tokens",
            "usage_ratio",
            "level",
        )
        return {"should_compact": False, **dict.fromkeys(unknown)}
    return {
        "available_input_tokens": budget.input,
        "context_window": budget.window,
        "threshold_tokens": budget.threshold,
        "usage_ratio": round(tokens / max(1, budget.input), 4),
        "should_compact": budget.over(tokens),
        "level": _level(budget, tokens),
    }


def _level(budget: Budget, tokens: int) -> str:
    if budget.over(tokens):
        return "critical"
    return "warning" if tokens >= WARNING_RATIO * budget.threshold else "ok"


def _breakdown(now: Situation, tokens: int) -> dict[str, int]:
    """The parts are estimates; the history is what remains of the measured whole, so that they add up to it where they can."""
    parts = {
        **session_context.fixed_parts(now),
        "current_prompt": session_context.recount(
            now, backend_registry.get().newest_prompt(now.subject)
        ),
        "file_attachments": session_context.attached(now),
    }
    return {name: parts.get(name, max(0, tokens - sum(parts.values()))) for name in PARTS}


def _summary_is_written(now: Situation) -> bool:
    return _WRITTEN.first(now.subject.session_id) is not None


_WRITTEN = Prepared(
    lambda own: (
        CompactionRun.objects.filter(
            session_id=own, status=CompactionRun.Status.RUNNING, announced=True
        )
        .order_by()
        .values("pk")
    ),
    UUID,
)

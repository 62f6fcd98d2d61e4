"""One line in the log for each decision about a session's context, whoever makes it: what for, by what numbers, and what is done."""

from typing import Any, Literal

import structlog

from compaction.sizing.session_context import SessionContext

log = structlog.get_logger("compaction.decisions")

Action = Literal["none", "held", "compact", "wait", "trim", "refuse"]


def log_decision(
    context: SessionContext,
    *,
    trigger: str,
    tokens: int,
    action: Action,
    force: bool = False,
    **log_fields: Any,
) -> None:
    """Write it down; `tokens` are of the next request. What passes unchanged on its way out is told at the debug level only.

    `figures`: how the tokens came about, where that is known: estimate, last_known, messages.
    """
    write_line = log.debug if action == "none" and trigger == "before_request" else log.info
    write_line(
        "context decision",
        session=str(context.facts.session_id),
        trigger=trigger,
        action=action,
        tokens=tokens,
        **_compare_with_budget(context, tokens),
        **{"estimate": None, "last_known": None, "messages": context.facts.message_count}
        | log_fields,
        system_chars=context.facts.system_chars,
        tool_chars=context.facts.tool_chars,
        force=force,
        policy=context.policy_name,
        automatic=context.automatic_mode,
    )


def _compare_with_budget(context: SessionContext, tokens: int) -> dict[str, Any]:
    """Shares are of the tokens that a request may take: 75 % of the budget is the threshold, 56 % is used."""
    if context.budget is None:
        return dict.fromkeys(
            ("window", "budget", "used", "threshold", "threshold_share", "needs_compaction")
        )
    return {
        "window": context.budget.window,
        "budget": context.budget.input,
        "used": _format_share(tokens, context.budget.input),
        "threshold": context.budget.threshold,
        "threshold_share": _format_share(context.budget.threshold, context.budget.input),
        "needs_compaction": context.budget.is_over(tokens),
    }


def _format_share(tokens: int, total: int) -> str:
    return f"{100 * tokens / max(1, total):.1f}%"

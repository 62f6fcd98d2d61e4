"""Log each decision about a session's context: why, by which numbers, and what is done."""

import logging
from typing import Literal

import structlog

from compaction.core.systems import describe_traits
from compaction.sessions.session_context import SessionContext

LOGGER_NAME = "compaction.decisions"
log = structlog.get_logger(LOGGER_NAME)

Action = Literal["none", "held", "compact", "wait", "trim", "refuse"]


def log_decision(
    context: SessionContext,
    *,
    trigger: str,
    tokens: int,
    action: Action,
    force: bool = False,
    estimate: int | None = None,
    last_known: int | None = None,
    messages: int | None = None,
) -> None:
    """Log a decision; `tokens` is the size of the next request.

    `estimate`, `last_known` and `messages` say how this size was measured, where that is known. A
    request that is sent unchanged is logged at the debug level, unless the policy logs each (see
    `is_logged`).
    """
    write_line = log.debug if _is_routine(context, trigger, action) else log.info
    write_line(
        "context decision",
        session=str(context.facts.session_id),
        trigger=trigger,
        action=action,
        tokens=tokens,
        **_compare_with_budget(context, tokens),
        estimate=estimate,
        last_known=last_known,
        messages=context.facts.message_count if messages is None else messages,
        system_chars=context.facts.sizes.system_chars,
        tool_chars=context.facts.sizes.tool_chars,
        force=force,
        policy=context.policy_name,
        automatic=context.automatic_mode,
    )


def is_logged(context: SessionContext, *, trigger: str, action: Action) -> bool:
    """Return False if the log level leaves this decision out, so that no numbers are computed."""
    level = logging.DEBUG if _is_routine(context, trigger, action) else logging.INFO
    return logging.getLogger(LOGGER_NAME).isEnabledFor(level)


def _is_routine(context: SessionContext, trigger: str, action: Action) -> bool:
    """Return whether this is a request that is sent unchanged: there is one in each turn."""
    is_unchanged = action == "none" and trigger == "before_request"
    return is_unchanged and not describe_traits(context.policy).logs_requests


def _compare_with_budget(context: SessionContext, tokens: int) -> dict[str, object]:
    """Return the numbers of the budget; shares are percentages of a request's largest size."""
    budget = context.budget
    if budget is None:
        return dict.fromkeys(
            ("window", "budget", "used", "threshold", "threshold_share", "needs_compaction")
        )
    return {
        "window": budget.window,
        "budget": budget.input,
        "used": _format_share(tokens, budget.input),
        "threshold": budget.threshold,
        "threshold_share": _format_share(budget.threshold, budget.input),
        "needs_compaction": budget.is_over(tokens),
    }


def _format_share(tokens: int, total: int) -> str:
    return f"{100 * tokens / max(1, total):.1f}%"

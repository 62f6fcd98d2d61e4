"""One line in the log for each decision about a session's context, whoever makes it: what for, by what numbers, and what is done."""

from typing import Any, Literal

import structlog

from compaction.sizing.session_context import Situation

log = structlog.get_logger("compaction.decisions")

Action = Literal["none", "held", "compact", "wait", "trim", "refuse"]


def decided(
    now: Situation,
    *,
    trigger: str,
    tokens: int,
    action: Action,
    force: bool = False,
    **figures: Any,
) -> None:
    """Write it down; `tokens` are of the next request. What passes unchanged on its way out is told at the debug level only.

    `figures`: how the tokens came about, where that is known: estimate, last_known, messages.
    """
    level = log.debug if action == "none" and trigger == "before_request" else log.info
    level(
        "context decision",
        session=str(now.subject.session_id),
        trigger=trigger,
        action=action,
        tokens=tokens,
        **_against_the_budget(now, tokens),
        **{"estimate": None, "last_known": None, "messages": now.subject.message_count} | figures,
        system_chars=now.subject.system_chars,
        tool_chars=now.subject.tool_chars,
        force=force,
        policy=now.policy_name,
        automatic=now.automatic,
    )


def _against_the_budget(now: Situation, tokens: int) -> dict[str, Any]:
    """Shares are of the tokens that a request may take: 75 % of the budget is the threshold, 56 % is used."""
    if now.budget is None:
        return dict.fromkeys(
            ("window", "budget", "used", "threshold", "threshold_share", "needs_compaction")
        )
    return {
        "window": now.budget.window,
        "budget": now.budget.input,
        "used": _share(tokens, now.budget.input),
        "threshold": now.budget.threshold,
        "threshold_share": _share(now.budget.threshold, now.budget.input),
        "needs_compaction": now.budget.over(tokens),
    }


def _share(tokens: int, whole: int) -> str:
    return f"{100 * tokens / max(1, whole):.1f}%"

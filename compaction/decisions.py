"""One line in the log for each decision about a session's context, whoever makes it: what for, by what numbers, and what is done."""

from typing import Literal

import structlog

from compaction.situation import Situation

log = structlog.get_logger(__name__)

Action = Literal["none", "held", "compact", "trim", "refuse"]


def decided(now: Situation, *, trigger: str, tokens: int, action: Action) -> None:
    """Write it down; `tokens` are of the next request. What passes unchanged on its way out is told at the debug level only."""
    level = log.debug if action == "none" and trigger == "before_request" else log.info
    level(
        "context decision",
        session=str(now.subject.session_id),
        trigger=trigger,
        tokens=tokens,
        threshold=now.budget.threshold if now.budget else None,
        window=now.budget.window if now.budget else None,
        policy=now.policy_name,
        automatic=now.automatic,
        action=action,
    )

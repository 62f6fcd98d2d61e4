"""From a policy and a window to whole numbers of tokens: where to act, what to keep, what to aim for."""

from dataclasses import dataclass, replace
from decimal import Decimal

from compaction.core.policy import Policy


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """All in tokens. `summary` is the most a summary may take, `target` where a pass stops, `recovery` the threshold after an overflow."""

    window: int
    threshold: int
    protected: int
    target: int
    summary: int
    recovery: int
    strict: bool = True

    def over(self, tokens: int) -> bool:
        """Whether so many tokens are too many; under a strict policy equal is not over."""
        return tokens > self.threshold if self.strict else tokens >= self.threshold

    def recovering(self) -> "Budget":
        """The budget after an overflow: the threshold comes down to the recovery share."""
        return replace(self, threshold=min(self.threshold, self.recovery))


def plan(policy: Policy, window: int | None) -> Budget | None:
    """The budget of a window in tokens. None where the window is unknown (or 0) and the policy says `disable`: no compaction.

    FEAT-011, Constants: a window of 8,192 has its threshold at 6,963 and protects 2,048.
    """
    size = window or (0 if policy.window.unknown == "disable" else policy.window.unknown)
    if size <= 0:
        return None
    threshold, protected = share(policy.trigger.threshold, size), share(policy.protect.ratio, size)
    # In a small window a summary of full length would fill what compaction frees: it gets half of that.
    summary = max(1, min(policy.summary.max_tokens, (threshold - protected) // 2))
    return Budget(
        window=size,
        threshold=threshold,
        protected=protected,
        target=min(threshold, protected + summary),
        summary=summary,
        recovery=share(policy.overflow.recovery_ratio, size),
        strict=policy.trigger.strict,
    )


def share(ratio: float, tokens: int) -> int:
    """A ratio of a number of tokens, rounded down, in decimal arithmetic: 0.29 of 100 is 29."""
    return int(Decimal(str(ratio)) * tokens)

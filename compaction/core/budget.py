"""The arithmetic from a policy and a context window to whole numbers of tokens.

A worked example, `oneclaw` in a window of 8,192 tokens:

    threshold   85 % of 8,192, rounded down              6,963   (strict: acts from 6,964 on)
    tail        25 % of 8,192                            2,048
    summary     the smaller of 2,048 (`max_tokens`)
                and half of 6,963 - 2,048                2,048
    target      tail and summary                         4,096

So a pass begins above 6,963 tokens, keeps the newest 2,048 as they are, and stops at 4,096.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from compaction.core.policy import Policy
from compaction.core.systems import find_system

# A model may take less input than its window less the answer. A threshold at that limit would be
# reached first by the request that is refused, so it is below it.
LIMIT_SHARE = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """The limits for one model under one policy, in tokens."""

    window: int
    """The whole context window."""
    input: int
    """What the policy gives a request: the window without the output reserve."""
    request_limit: int
    """What the provider takes as a request: the whole window, or less."""
    basis: int
    """What the policy's ratios are ratios of: the window or the input."""
    threshold: int
    """The size at which a context is compacted."""
    protected_tokens: int
    """The most that the protected tail may take."""
    target: int
    """The size at which a pass stops."""
    summary_tokens: int
    """The most that a summary may take."""
    recovery_threshold: int
    """The threshold after the provider refused a request for its length."""
    is_strict: bool = True
    """Whether a context of exactly the threshold is still small enough."""

    def is_over(self, tokens: int) -> bool:
        """Return whether so many tokens are too many."""
        return tokens > self.threshold if self.is_strict else tokens >= self.threshold

    @property
    def trigger_tokens(self) -> int:
        """The smallest number of tokens that is too many."""
        return self.threshold + 1 if self.is_strict else self.threshold

    def reduce_for_recovery(self) -> "Budget":
        """Return the budget after an overflow: a lower threshold, and a tail that fits below it."""
        threshold = min(self.threshold, self.recovery_threshold)
        summary_space = min(self.summary_tokens, threshold // 2)
        return replace(
            self,
            threshold=threshold,
            target=min(self.target, threshold),
            protected_tokens=min(self.protected_tokens, threshold - summary_space),
        )


def plan(
    policy: Policy,
    window: int | None,
    *,
    max_input: int | None = None,
    output_reserve: int | None = None,
    max_tokens: int | None = None,
    family: str = "",
) -> Budget | None:
    """Return the budget for a context window, given in tokens; 0 and None mean that it is unknown.

    Returns None, which means no compaction, if neither the window nor one to assume is known.
    `max_input` and `output_reserve` are what the registry says of the model's requests and answers,
    `max_tokens` is what the session asks of an answer, `family` the model's family.
    """
    system = find_system(policy)
    if system:
        return system.plan(
            policy,
            window,
            max_input=max_input,
            output_reserve=output_reserve,
            max_tokens=max_tokens,
            family=family,
        )
    if not window or window < 0:
        return None
    request_limit = min(window, max_input or window)
    threshold = limit_threshold(take_share(policy.trigger.threshold, window), window, request_limit)
    protected_tokens, summary_tokens = split_threshold(policy, window, threshold)
    return Budget(
        window=window,
        input=window,
        request_limit=request_limit,
        basis=window,
        threshold=threshold,
        protected_tokens=protected_tokens,
        target=min(threshold, protected_tokens + summary_tokens),
        summary_tokens=summary_tokens,
        recovery_threshold=take_share(policy.overflow.recovery_ratio, request_limit),
    )


def limit_threshold(threshold: int, window: int, request_limit: int) -> int:
    """Return a threshold below what the model takes as a request, where that is no whole window."""
    if request_limit < window:
        return min(threshold, take_share(LIMIT_SHARE, request_limit))
    return threshold


def take_share(ratio: float, tokens: int, *, round_up: bool = False) -> int:
    """Return a ratio of a number of tokens as a whole number, rounded down unless `round_up`.

    The arithmetic is decimal: 0.29 of 100 is 29, where floating point gives 28.
    """
    dividend, divisor = _split_ratio(ratio)
    return -(-tokens * dividend // divisor) if round_up else tokens * dividend // divisor


# Cached, because a fraction is slow to create, and some stages take a share of every message.
@lru_cache(maxsize=256)
def _split_ratio(ratio: float) -> tuple[int, int]:
    """Return the two whole numbers whose quotient is the ratio as it is written."""
    return Fraction(str(ratio)).as_integer_ratio()


def split_threshold(policy: Policy, basis: int, threshold: int) -> tuple[int, int]:
    """Return the most tokens that the protected tail and the summary may take.

    In a small window a summary of full length would fill all that compaction frees, so it gets at
    most half of that.
    """
    protected_tokens = min(threshold, take_share(policy.protect.ratio, basis))
    free_tokens = threshold - protected_tokens
    return protected_tokens, max(1, min(compute_summary_space(policy, basis), free_tokens // 2))


def compute_summary_space(policy: Policy, basis: int) -> int:
    """Return the most tokens that the policy gives a summary, whatever else needs room."""
    ratio = policy.summary.room_ratio
    share = 0 if ratio is None else take_share(ratio, basis)
    return max(policy.summary.max_tokens, share)


def share_evenly(demands: Sequence[int], budget: int) -> list[int]:
    """Return what each demand gets: all of it, or the same amount as every other that is cut.

    For example, 100 shared by demands of 10, 200 and 60 gives 10, 45 and 45: a demand under the
    level is met, and what it leaves raises the level of the others (water-filling).
    """
    level = _find_level(demands, max(0, budget))
    return [min(demand, level) for demand in demands]


def _find_level(demands: Sequence[int], budget: int) -> int:
    remaining_budget = budget
    for index, demand in enumerate(sorted(demands)):
        level = remaining_budget // (len(demands) - index)
        if demand > level:
            return level
        remaining_budget -= demand
    return max(demands, default=0)

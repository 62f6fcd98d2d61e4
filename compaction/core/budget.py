"""From a policy and a window to whole numbers of tokens: where to act, what to keep, what to aim for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from compaction.core.groups.size import BudgetKnobs
from compaction.core.policy import Policy


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """All in tokens. `input` is what a request may hold, `threshold` where to act, `target` where a pass stops.

    `protected` is the most that the protected tail may take, `summary` the most that a summary may, `recovery` the threshold after an
    overflow. `basis` is what the policy's ratios are ratios of: the window or the input.
    """

    window: int
    input: int
    basis: int
    threshold: int
    protected_tokens: int
    target: int
    summary_tokens: int
    recovery_threshold: int
    is_strict: bool = True

    def is_over(self, tokens: int) -> bool:
        """Whether so many tokens are too many; under a strict policy equal is not over."""
        return tokens > self.threshold if self.is_strict else tokens >= self.threshold

    @property
    def trigger_tokens(self) -> int:
        """The smallest number of tokens that is too many."""
        return self.threshold + 1 if self.is_strict else self.threshold

    def reduce_for_recovery(self) -> "Budget":
        """The budget after an overflow: the threshold comes down to the recovery share, and all that must stay below it."""
        threshold = min(self.threshold, self.recovery_threshold)
        tail_room = max(0, threshold - min(self.summary_tokens, threshold // 2))
        return replace(
            self,
            threshold=threshold,
            target=min(self.target, threshold),
            protected_tokens=min(self.protected_tokens, tail_room),
        )


def plan(
    policy: Policy,
    window: int | None,
    *,
    output_reserve: int | None = None,
    max_tokens: int | None = None,
    family: str = "",
) -> Budget | None:
    """The budget of a window in tokens. None where the window is unknown (or 0) and the policy says `disable`: no compaction.

    `output_reserve` is what the registry says of the model, `max_tokens` what the session asks of an answer, `family` the model's.
    FEAT-011, Constants: a window of 8,192 has its threshold at 6,963 and protects 2,048.
    """
    window_tokens = window or assume_window(policy, family)
    if window_tokens <= 0:
        return None
    input_tokens = compute_available_input(
        policy.budget,
        window_tokens,
        compute_reserve(
            policy.budget, window_tokens, output_reserve=output_reserve, max_tokens=max_tokens
        ),
    )
    basis = input_tokens if policy.budget.basis == "input" else window_tokens
    threshold = _compute_threshold(policy, window_tokens, input_tokens, basis)
    max_target = threshold if policy.trigger.strict else max(0, threshold - 1)
    protected_tokens, summary_tokens = _compute_tail_and_summary(policy, basis, threshold)
    return Budget(
        window=window_tokens,
        input=input_tokens,
        basis=basis,
        threshold=threshold,
        protected_tokens=protected_tokens,
        target=_compute_target(policy, basis, max_target, protected_tokens + summary_tokens),
        summary_tokens=summary_tokens,
        recovery_threshold=take_share(policy.overflow.recovery_ratio, basis),
        is_strict=policy.trigger.strict,
    )


def assume_window(policy: Policy, family: str = "") -> int:
    """The window to take where the model does not say, in tokens; 0: none, there is no compaction."""
    setting = policy.window.by_family.get(family, policy.window.unknown)
    return 0 if setting == "disable" else int(setting)


def compute_reserve(
    knobs: BudgetKnobs,
    window: int,
    *,
    output_reserve: int | None = None,
    max_tokens: int | None = None,
) -> int:
    """Tokens of the window that the answer is kept. A max_tokens wins, except where the answer takes nothing of the window."""
    setting = knobs.output_reserve
    if isinstance(setting, Mapping):
        reserve_tokens = min(
            int(setting["max"]), take_share(setting["ratio"], window, round_up=True)
        )
    else:
        reserve_tokens = (output_reserve or 0) if setting == "model" else int(setting)
    return max_tokens if reserve_tokens and max_tokens else reserve_tokens


def compute_available_input(knobs: BudgetKnobs, window: int, reserve_tokens: int) -> int:
    """Tokens that a request may hold: what the reserve leaves, but never less than the floor."""
    return max(0, window - reserve_tokens, take_share(knobs.floor_ratio, window))


def take_share(ratio: float, tokens: int, *, round_up: bool = False) -> int:
    """A ratio of a number of tokens, rounded down (or up), in decimal arithmetic: 0.29 of 100 is 29."""
    return int(
        (Decimal(str(ratio)) * tokens).to_integral_value(ROUND_CEILING if round_up else ROUND_FLOOR)
    )


def _compute_threshold(policy: Policy, window: int, input_tokens: int, basis: int) -> int:
    """ "At least 80 %" begins at the next whole token, "above 85 %" after the last one."""
    threshold = take_share(policy.trigger.threshold, basis, round_up=not policy.trigger.strict)
    if not policy.trigger.clamp:
        return threshold
    return min(
        threshold,
        max(
            input_tokens - policy.budget.safety_margin,
            take_share(policy.budget.floor_ratio, window),
        ),
    )


def _compute_tail_and_summary(policy: Policy, basis: int, threshold: int) -> tuple[int, int]:
    """In a small window a summary of full length would fill what compaction frees: it gets half of that.

    A tail that is not told in tokens may take what the summary leaves.
    """
    by_tokens = policy.protect.kind == "token_ratio"
    protected_tokens = min(threshold, take_share(policy.protect.ratio, basis)) if by_tokens else 0
    summary_tokens = max(1, min(policy.summary.max_tokens, (threshold - protected_tokens) // 2))
    return (protected_tokens if by_tokens else max(0, threshold - summary_tokens)), summary_tokens


def _compute_target(policy: Policy, basis: int, max_target: int, tail_tokens: int) -> int:
    if policy.target.ratio is not None:
        return min(max_target, take_share(policy.target.ratio, basis))
    return min(max_target, tail_tokens) if policy.target.otherwise == "tail" else max_target

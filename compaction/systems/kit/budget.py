"""Budgets with an output reserve, other bases of shares, targets, and windows that are assumed."""

from collections.abc import Mapping

from compaction.core.budget import (
    Budget,
    compute_summary_space,
    limit_threshold,
    split_threshold,
    take_share,
)
from compaction.core.policy import Policy
from compaction.systems.kit.settings import (
    BudgetKnobs,
    TailKnobs,
    TargetKnobs,
    ThresholdKnobs,
    WindowKnobs,
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
    """Return the budget as `core.budget.plan` does, for the settings of systems."""
    window_tokens = window or assume_window(policy, family)
    if window_tokens <= 0:
        return None
    knobs = policy.get(BudgetKnobs)
    reserve_tokens = compute_reserve(
        knobs, window_tokens, output_reserve=output_reserve, max_tokens=max_tokens
    )
    input_tokens = compute_available_input(knobs, window_tokens, reserve_tokens)
    basis = input_tokens if knobs.basis == "input" else window_tokens
    request_limit = min(window_tokens, max_input or window_tokens)
    threshold = limit_threshold(
        _compute_threshold(policy, window_tokens, input_tokens, basis), window_tokens, request_limit
    )
    protected_tokens, summary_tokens = _compute_tail_and_summary(policy, basis, threshold)
    return Budget(
        window=window_tokens,
        input=input_tokens,
        request_limit=request_limit,
        basis=basis,
        threshold=threshold,
        protected_tokens=protected_tokens,
        target=_compute_target(policy, basis, threshold, protected_tokens + summary_tokens),
        summary_tokens=summary_tokens,
        recovery_threshold=take_share(policy.overflow.recovery_ratio, min(basis, request_limit)),
        is_strict=policy.get(ThresholdKnobs).strict,
    )


def assume_window(policy: Policy, family: str = "") -> int:
    """Return the window to assume for a model whose window is unknown, in tokens; 0 for none."""
    knobs = policy.get(WindowKnobs)
    setting = knobs.by_family.get(family, knobs.unknown)
    return 0 if setting == "disable" else int(setting)


def compute_reserve(
    knobs: BudgetKnobs,
    window: int,
    *,
    output_reserve: int | None = None,
    max_tokens: int | None = None,
) -> int:
    """Return the tokens of the window that are kept free for the answer.

    The session's `max_tokens` replaces the reserve, unless the policy reserves nothing.
    """
    setting = knobs.output_reserve
    if isinstance(setting, Mapping):
        share = take_share(setting["ratio"], window, round_up=True)
        reserve_tokens = min(int(setting["max"]), share)
    elif setting == "model":
        reserve_tokens = output_reserve or 0
    else:
        reserve_tokens = int(setting)
    return max_tokens if reserve_tokens and max_tokens else reserve_tokens


def compute_available_input(knobs: BudgetKnobs, window: int, reserve_tokens: int) -> int:
    """Return the tokens that a request may hold: the window without the reserve, or the floor."""
    return max(0, window - reserve_tokens, take_share(knobs.floor_ratio, window))


def _compute_threshold(policy: Policy, window: int, input_tokens: int, basis: int) -> int:
    knobs, budget_knobs = policy.get(ThresholdKnobs), policy.get(BudgetKnobs)
    # "At least 80 %" begins at the next whole token, "above 85 %" after the last one.
    threshold = take_share(policy.trigger.threshold, basis, round_up=not knobs.strict)
    if not knobs.clamp:
        return threshold
    floor = take_share(budget_knobs.floor_ratio, window)
    return min(threshold, max(input_tokens - budget_knobs.safety_margin, floor))


def _compute_tail_and_summary(policy: Policy, basis: int, threshold: int) -> tuple[int, int]:
    """Return the most tokens that the tail and the summary may take.

    A tail that is not given in tokens may take what the summary leaves.
    """
    if not policy.get(TailKnobs).replaces_tail:
        return split_threshold(policy, basis, threshold)
    summary_tokens = max(1, min(compute_summary_space(policy, basis), threshold // 2))
    return max(0, threshold - summary_tokens), summary_tokens


def _compute_target(policy: Policy, basis: int, threshold: int, tail_tokens: int) -> int:
    knobs = policy.get(TargetKnobs)
    # Under a policy that is not strict the threshold itself is too large.
    max_target = threshold if policy.get(ThresholdKnobs).strict else max(0, threshold - 1)
    if knobs.ratio is not None:
        return min(max_target, take_share(knobs.ratio, basis))
    return min(max_target, tail_tokens) if knobs.otherwise == "tail" else max_target

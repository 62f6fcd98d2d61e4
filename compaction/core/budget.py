"""From a policy and a window to whole numbers of tokens: where to act, what to keep, what to aim for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from compaction.core.groups.size import Basis
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
    protected: int
    target: int
    summary: int
    recovery: int
    strict: bool = True

    def over(self, tokens: int) -> bool:
        """Whether so many tokens are too many; under a strict policy equal is not over."""
        return tokens > self.threshold if self.strict else tokens >= self.threshold

    @property
    def first_over(self) -> int:
        """The smallest number of tokens that is too many."""
        return self.threshold + 1 if self.strict else self.threshold

    def recovering(self) -> "Budget":
        """The budget after an overflow: the threshold comes down to the recovery share, and all that must stay below it."""
        threshold = min(self.threshold, self.recovery)
        room = max(0, threshold - min(self.summary, threshold // 2))
        return replace(
            self,
            threshold=threshold,
            target=min(self.target, threshold),
            protected=min(self.protected, room),
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
    size = window or assumed(policy, family)
    if size <= 0:
        return None
    room = available(
        policy.budget,
        size,
        reserve(policy.budget, size, output_reserve=output_reserve, max_tokens=max_tokens),
    )
    basis = room if policy.budget.basis == "input" else size
    threshold = _threshold(policy, size, room, basis)
    most = threshold if policy.trigger.strict else max(0, threshold - 1)
    protected, summary = _tail_and_summary(policy, basis, threshold)
    return Budget(
        window=size,
        input=room,
        basis=basis,
        threshold=threshold,
        protected=protected,
        target=_target(policy, basis, most, protected + summary),
        summary=summary,
        recovery=share(policy.overflow.recovery_ratio, basis),
        strict=policy.trigger.strict,
    )


def assumed(policy: Policy, family: str = "") -> int:
    """The window to take where the model does not say, in tokens; 0: none, there is no compaction."""
    unknown = policy.window.by_family.get(family, policy.window.unknown)
    return 0 if unknown == "disable" else int(unknown)


def reserve(
    basis: Basis, window: int, *, output_reserve: int | None = None, max_tokens: int | None = None
) -> int:
    """Tokens of the window that the answer is kept. A max_tokens wins, except where the answer takes nothing of the window."""
    wanted = basis.output_reserve
    if isinstance(wanted, Mapping):
        kept = min(int(wanted["max"]), share(wanted["ratio"], window, up=True))
    else:
        kept = (output_reserve or 0) if wanted == "model" else int(wanted)
    return max_tokens if kept and max_tokens else kept


def available(basis: Basis, window: int, reserved: int) -> int:
    """Tokens that a request may hold: what the reserve leaves, but never less than the floor."""
    return max(0, window - reserved, share(basis.floor_ratio, window))


def share(ratio: float, tokens: int, *, up: bool = False) -> int:
    """A ratio of a number of tokens, rounded down (or up), in decimal arithmetic: 0.29 of 100 is 29."""
    return int(
        (Decimal(str(ratio)) * tokens).to_integral_value(ROUND_CEILING if up else ROUND_FLOOR)
    )


def _threshold(policy: Policy, window: int, room: int, basis: int) -> int:
    """ "At least 80 %" begins at the next whole token, "above 85 %" after the last one."""
    threshold = share(policy.trigger.threshold, basis, up=not policy.trigger.strict)
    if not policy.trigger.clamp:
        return threshold
    return min(
        threshold, max(room - policy.budget.safety_margin, share(policy.budget.floor_ratio, window))
    )


def _tail_and_summary(policy: Policy, basis: int, threshold: int) -> tuple[int, int]:
    """In a small window a summary of full length would fill what compaction frees: it gets half of that.

    A tail that is not told in tokens may take what the summary leaves.
    """
    by_tokens = policy.protect.kind == "token_ratio"
    protected = min(threshold, share(policy.protect.ratio, basis)) if by_tokens else 0
    summary = max(1, min(policy.summary.max_tokens, (threshold - protected) // 2))
    return (protected if by_tokens else max(0, threshold - summary)), summary


def _target(policy: Policy, basis: int, most: int, tail: int) -> int:
    if policy.target.ratio is not None:
        return min(most, share(policy.target.ratio, basis))
    return min(most, tail) if policy.target.otherwise == "tail" else most

"""Budgets: whole tokens out of ratios, and when they are exceeded."""

import pytest

from compaction.core.budget import Budget, plan, share
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW


def budget(window: int, **overrides: object) -> Budget:
    made = plan(Policy.parse(overrides, ONECLAW), window)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("window", "threshold", "protected"),
    [(8_192, 6_963, 2_048), (200_000, 170_000, 50_000), (128_000, 108_800, 32_000), (1_048_576, 891_289, 262_144), (2_048, 1_740, 512)],
)
def test_thresholds_are_whole_numbers_rounded_down(window: int, threshold: int, protected: int) -> None:
    made = budget(window)
    assert (made.window, made.threshold, made.protected) == (window, threshold, protected)


def test_the_ratios_are_the_policy_s() -> None:
    made = budget(10_000, trigger={"threshold": 0.6}, protect={"ratio": 0.1})
    assert (made.threshold, made.protected) == (6_000, 1_000)


def test_equal_is_not_over() -> None:
    made = budget(200_000)
    assert not made.over(170_000)
    assert made.over(170_001)


def test_a_policy_that_is_not_strict_acts_at_the_threshold() -> None:
    made = budget(200_000, trigger={"strict": False})
    assert made.over(170_000)
    assert not made.over(169_999)


@pytest.mark.parametrize("window", [None, 0])
def test_an_unknown_window_has_no_budget(window: int | None) -> None:
    assert plan(ONECLAW, window) is None


def test_a_policy_may_assume_a_window_where_none_is_known() -> None:
    made = plan(Policy.parse({"window": {"unknown": 128_000}}, ONECLAW), None)
    assert made is not None
    assert made.window == 128_000


def test_it_aims_for_the_protected_tail_and_a_summary() -> None:
    assert budget(200_000).target == 50_000 + 2_048
    assert budget(200_000, summary={"max_tokens": 500}).target == 50_500


def test_a_small_window_gets_a_shorter_summary() -> None:
    made = budget(2_048)
    assert made.summary == (1_740 - 512) // 2
    assert made.target < made.threshold


def test_after_an_overflow_it_comes_down_to_the_recovery_ratio() -> None:
    made = budget(10_000).recovering()
    assert made.threshold == 7_000
    assert budget(10_000, overflow={"recovery_ratio": 0.5}).recovering().threshold == 5_000
    assert budget(10_000, overflow={"recovery_ratio": 0.9}).recovering().threshold == 8_500


@pytest.mark.parametrize("window", [1, 2, 3, 7, 100])
def test_no_window_is_too_small_for_whole_numbers(window: int) -> None:
    made = budget(window)
    assert 0 <= made.protected <= made.target <= made.threshold <= window
    assert made.summary >= 1


def test_shares_are_exact() -> None:
    assert share(0.29, 100) == 29
    assert share(0.85, 8_192) == 6_963

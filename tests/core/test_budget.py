"""Budgets: whole tokens out of ratios, and when they are exceeded."""

from typing import Any

import pytest

from compaction.core.budget import Budget, plan, take_share
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW, PRESETS


def budget(window: int, **overrides: object) -> Budget:
    budget_plan = plan(Policy.parse(overrides, ONECLAW), window)
    assert budget_plan is not None
    return budget_plan


@pytest.mark.parametrize(
    ("window", "threshold", "tail_tokens"),
    [
        (8_192, 6_963, 2_048),
        (200_000, 170_000, 50_000),
        (128_000, 108_800, 32_000),
        (1_048_576, 891_289, 262_144),
        (2_048, 1_740, 512),
    ],
)
def test_thresholds_are_whole_numbers_rounded_down(
    window: int, threshold: int, tail_tokens: int
) -> None:
    budget_plan = budget(window)
    assert (budget_plan.window, budget_plan.threshold, budget_plan.protected_tokens) == (
        window,
        threshold,
        tail_tokens,
    )


def test_the_ratios_are_the_policy_s() -> None:
    budget_plan = budget(10_000, trigger={"threshold": 0.6}, protect={"ratio": 0.1})
    assert (budget_plan.threshold, budget_plan.protected_tokens) == (6_000, 1_000)


def test_equal_is_not_over() -> None:
    budget_plan = budget(200_000)
    assert not budget_plan.is_over(170_000)
    assert budget_plan.is_over(170_001)


def test_a_policy_that_is_not_strict_acts_at_the_threshold() -> None:
    budget_plan = budget(200_000, trigger={"strict": False})
    assert budget_plan.is_over(170_000)
    assert not budget_plan.is_over(169_999)


@pytest.mark.parametrize("window", [None, 0])
def test_an_unknown_window_has_no_budget(window: int | None) -> None:
    assert plan(ONECLAW, window) is None


def test_a_policy_may_assume_a_window_where_none_is_known() -> None:
    budget_plan = plan(Policy.parse({"window": {"unknown": 128_000}}, ONECLAW), None)
    assert budget_plan is not None
    assert budget_plan.window == 128_000


def test_it_aims_for_the_protected_tail_and_a_summary() -> None:
    assert budget(200_000).target == 50_000 + 2_048
    assert budget(200_000, summary={"max_tokens": 500}).target == 50_500


def test_a_small_window_gets_a_shorter_summary() -> None:
    budget_plan = budget(2_048)
    assert budget_plan.summary_tokens == (1_740 - 512) // 2
    assert budget_plan.target < budget_plan.threshold


def test_after_an_overflow_it_comes_down_to_the_recovery_ratio() -> None:
    budget_plan = budget(10_000).reduce_for_recovery()
    assert budget_plan.threshold == 7_000
    assert budget(10_000, overflow={"recovery_ratio": 0.5}).reduce_for_recovery().threshold == 5_000
    assert budget(10_000, overflow={"recovery_ratio": 0.9}).reduce_for_recovery().threshold == 8_500


@pytest.mark.parametrize("window", [1, 2, 3, 7, 100, 512, 8_192, 200_000])
@pytest.mark.parametrize("name", PRESETS)
def test_no_window_is_too_small_for_whole_numbers(window: int, name: str) -> None:
    budget_plan = plan(PRESETS[name], window)
    assert budget_plan is not None
    for each in (budget_plan, budget_plan.reduce_for_recovery()):
        assert 0 <= each.protected_tokens <= each.threshold <= each.input <= window
        assert 0 <= each.target <= each.threshold
        assert each.summary_tokens >= 1


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("oneclaw", 170_001),
        ("neurolink", 108_800),
        ("lota", 140_000),
        ("wolffish", 150_001),
        ("baseagent", 142_801),
    ],
)
def test_each_system_triggers_a_window_of_200_000_at_its_own_count(name: str, first: int) -> None:
    budget_plan = plan(PRESETS[name], 200_000)
    assert budget_plan is not None
    assert budget_plan.trigger_tokens == first
    assert budget_plan.is_over(first)
    assert not budget_plan.is_over(first - 1)


def test_at_least_a_share_begins_at_the_next_whole_token() -> None:
    assert budget(8_192, trigger={"strict": False}).trigger_tokens == 6_964
    assert budget(8_192).trigger_tokens == 6_964
    assert budget(200_000, trigger={"strict": False}).trigger_tokens == 170_000


def test_a_reserve_may_be_tokens_a_share_or_the_model_s() -> None:
    def space(reserve: object, **known: Any) -> int:
        budget_plan = plan(
            Policy.parse({"budget": {"output_reserve": reserve}}, ONECLAW), 10_001, **known
        )
        assert budget_plan is not None
        return budget_plan.input

    assert space(3_000) == 7_001
    assert space({"ratio": 0.25, "max": 64_000}) == 10_001 - 2_501
    assert space({"ratio": 0.25, "max": 2_000}) == 8_001
    assert space("model", output_reserve=1_000) == 9_001
    assert space("model", output_reserve=None) == 10_001
    assert space(3_000, output_reserve=1_000) == 7_001


def test_a_max_tokens_wins_over_a_reserve_but_not_over_none() -> None:
    def space(reserve: object, **known: Any) -> int:
        budget_plan = plan(
            Policy.parse({"budget": {"output_reserve": reserve, "basis": "input"}}, ONECLAW),
            10_000,
            **known,
        )
        assert budget_plan is not None
        return budget_plan.input

    assert space(3_000, max_tokens=500) == 9_500
    assert space({"ratio": 0.35, "max": 64_000}, max_tokens=500) == 9_500
    assert space("model", output_reserve=4_000, max_tokens=500) == 9_500
    assert space("model", output_reserve=0, max_tokens=500) == 10_000
    assert space(0, max_tokens=500) == 10_000


def test_the_input_is_never_below_its_floor() -> None:
    assert budget(10_000, budget={"output_reserve": 9_000, "floor_ratio": 0.5}).input == 5_000
    assert budget(10_000, budget={"output_reserve": 20_000, "floor_ratio": 0.1}).input == 1_000
    assert budget(10_000, budget={"output_reserve": 20_000, "floor_ratio": 0}).input == 0


def test_the_ratios_are_of_the_basis() -> None:
    reserve_knobs = {"output_reserve": 5_000, "floor_ratio": 0}
    of_window, of_input = (
        budget(10_000, budget={**reserve_knobs, "basis": basis}) for basis in ("window", "input")
    )
    assert (of_window.threshold, of_window.protected_tokens, of_window.recovery_threshold) == (
        8_500,
        2_500,
        7_000,
    )
    assert (of_input.threshold, of_input.protected_tokens, of_input.recovery_threshold) == (
        4_250,
        1_250,
        3_500,
    )


def test_a_clamp_leaves_room_for_the_answer_and_a_margin() -> None:
    knobs = {"output_reserve": 3_000, "safety_margin": 500, "floor_ratio": 0.2}
    assert budget(10_000, budget=knobs).threshold == 8_500
    assert budget(10_000, budget=knobs, trigger={"clamp": True}).threshold == 6_500
    assert (
        budget(3_600, budget=knobs, trigger={"clamp": True}, protect={"ratio": 0.1}).threshold
        == 720
    )


def test_a_target_is_a_share_the_tail_or_whatever_fits() -> None:
    assert budget(10_000, target={"ratio": 0.5}).target == 5_000
    assert budget(10_000, target={"otherwise": "tail"}).target == 2_500 + 2_048
    assert budget(10_000, target={"otherwise": "fits"}).target == 8_500
    assert budget(10_000, target={"otherwise": "fits"}, trigger={"strict": False}).target == 8_499


def test_a_tail_that_is_not_told_in_tokens_may_take_what_the_summary_leaves() -> None:
    budget_plan = budget(10_000, protect={"kind": "count", "count": 6})
    assert budget_plan.protected_tokens == 8_500 - 2_048
    assert budget_plan.protected_tokens + budget_plan.summary_tokens == budget_plan.threshold


def test_a_window_may_be_assumed_by_the_model_s_family() -> None:
    budget_plan = Policy.parse(
        {"window": {"unknown": 1_000, "by_family": {"anthropic": 2_000}}}, ONECLAW
    )
    budgets = [plan(budget_plan, None, family=family) for family in ("anthropic", "", "openai")]
    assert [budget and budget.window for budget in budgets] == [2_000, 1_000, 1_000]


def test_shares_are_exact() -> None:
    assert take_share(0.29, 100) == 29
    assert take_share(0.85, 8_192) == 6_963


@pytest.mark.parametrize(
    ("policy", "input_tokens", "threshold"),
    [
        ("oneclaw", 400_000, 258_400),  # 95 % of the limit, because 85 % of the window is over it
        ("neurolink", 336_000, 258_400),
        ("lota", 368_000, 258_400),
        ("wolffish", 334_464, 250_848),  # as its document has it
        ("baseagent-long", 368_000, 257_600),
    ],
)
def test_what_the_model_takes_as_input_bounds_the_threshold_and_nothing_else(
    policy: str, input_tokens: int, threshold: int
) -> None:
    budget = plan(PRESETS[policy], 400_000, max_input=272_000, output_reserve=65_536)
    assert budget is not None
    assert (budget.window, budget.request_limit) == (400_000, 272_000)
    assert (budget.input, budget.threshold) == (input_tokens, threshold)
    assert budget.reduce_for_recovery().threshold == 190_400
    assert budget.target <= threshold


def test_without_a_limit_a_request_may_take_the_whole_window() -> None:
    budget = plan(ONECLAW, 400_000)
    assert budget is not None
    assert (budget.request_limit, budget.threshold) == (400_000, 340_000)
    assert plan(ONECLAW, 400_000, max_input=500_000) == budget

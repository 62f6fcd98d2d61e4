"""Sharing a budget so that no large demand starves a small one."""

from hypothesis import given
from hypothesis import strategies as st

from compaction.core.budget import share_evenly

DEMANDS = st.lists(st.integers(0, 100_000), max_size=20)


def test_small_demands_are_met_and_the_large_ones_get_the_same() -> None:
    assert share_evenly([10, 200, 60], 100) == [10, 45, 45]
    assert share_evenly([5_000, 15_000], 12_000) == [5_000, 7_000]
    assert share_evenly([5, 5], 100) == [5, 5]
    assert share_evenly([], 10) == []
    assert share_evenly([3, 4], -1) == [0, 0]


@given(DEMANDS, st.integers(0, 300_000))
def test_no_more_than_the_budget_is_given_and_almost_all_of_it(
    demands: list[int], budget: int
) -> None:
    grants = share_evenly(demands, budget)
    assert sum(grants) <= budget
    assert all(grant <= demand for grant, demand in zip(grants, demands, strict=True))
    assert sum(grants) > min(budget, sum(demands)) - max(1, len(demands))

"""Share a budget among demands so that no large one starves a small one."""

from collections.abc import Sequence


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

"""The engine decides about 2,000 random conversations as it did when these were frozen."""

import pytest

from compaction.core.presets import PRESETS
from tests.support.frozen_outcomes import COUNT, FOLDER, decide, describe, digest

QUICK_COUNT = 120  # the rest with bin/test --slow


def find_changed_seeds(preset: str, seeds: range) -> list[int]:
    """Return the conversations about which this version decides in another way."""
    marks = (FOLDER / f"{preset}.txt").read_text().split()
    assert len(marks) == COUNT
    return [seed for seed in seeds if digest(preset, seed) != marks[seed]]


def require_no_change(preset: str, seeds: range) -> None:
    changed = find_changed_seeds(preset, seeds)
    assert not changed, (
        f"{len(changed)} of {len(seeds)} decisions under {preset} changed. Compare the first with "
        f"an older version's: python -m tests.support.frozen_outcomes {preset} {changed[0]}"
    )


@pytest.mark.all_rows
@pytest.mark.parametrize("preset", PRESETS)
def test_decisions_are_those_that_were_frozen(preset: str) -> None:
    require_no_change(preset, range(QUICK_COUNT))


@pytest.mark.slow
@pytest.mark.all_rows
@pytest.mark.parametrize("preset", PRESETS)
def test_all_decisions_are_those_that_were_frozen(preset: str) -> None:
    require_no_change(preset, range(QUICK_COUNT, COUNT))


@pytest.mark.all_rows
@pytest.mark.parametrize("preset", PRESETS)
def test_the_conversations_reach_every_kind_of_decision(preset: str) -> None:
    missing = {"applied", "skipped", "failed", *PRESETS[preset].stages}
    for seed in range(COUNT):
        outcome = decide(preset, seed)["outcome"]
        missing -= {outcome["status"], *outcome.get("stages_used", ())}
        if not missing:
            return
    pytest.fail(f"No conversation reaches {sorted(missing)} under {preset}.")


def test_a_decision_is_the_same_each_time() -> None:
    assert describe("oneclaw", 5) == describe("oneclaw", 5)

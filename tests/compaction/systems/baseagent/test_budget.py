"""BaseAgent's sizes: the usable window, the estimate, the settings and the tuning profiles."""

import pytest

from compaction.core.budget import Budget, plan
from compaction.core.estimate import build_counter, measure
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry
from compaction.systems.kit.settings import BudgetKnobs, OutputKnobs, PruneKnobs

BASEAGENT = PRESETS["baseagent"]


def plan_budget(policy: Policy = BASEAGENT, window: int | None = 200_000) -> Budget:
    budget = plan(policy, window)
    assert budget is not None
    return budget


def test_the_context_window_is_200000_with_32000_reserved_and_168000_usable() -> None:
    assert (
        plan_budget(window=None).window,
        BASEAGENT.get(BudgetKnobs).output_reserve,
        plan_budget().input,
    ) == (
        200_000,
        32_000,
        168_000,
    )


def test_it_triggers_at_85_percent_of_the_usable_context() -> None:
    assert plan_budget().threshold == 142_800
    assert not plan_budget().is_over(142_800)
    assert plan_budget().is_over(142_801)


@pytest.mark.parametrize(
    ("tokens", "share", "over"),
    [(45_000, 26.8, False), (125_000, 74.4, False), (148_000, 88.1, True)],
)
def test_the_log_s_figures(tokens: int, share: float, over: bool) -> None:
    assert round(100 * tokens / plan_budget().input, 1) == share
    assert plan_budget().is_over(tokens) is over


def test_pruning_to_93000_was_sufficient() -> None:
    assert plan_budget().target >= 93_000


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (3, 0), (4, 1), (7, 1), (4_000, 1_000)])
def test_a_token_is_four_characters_rounded_down(characters: int, tokens: int) -> None:
    assert build_counter(BASEAGENT).count_characters(characters) == tokens


def test_a_message_is_its_content_its_images_its_calls_and_four_tokens() -> None:
    call = TranscriptCall(id="c", name="read", arguments='{"file_path": "x.py"}' + " " * 15)
    entry = TranscriptEntry(seq=1, role="assistant", content="x" * 400, images=2, calls=(call,))
    assert measure(Transcript(entries=(entry,)), BASEAGENT).tokens == 100 + 2 * 1_000 + 40 // 4 + 4


def test_settings() -> None:
    assert BASEAGENT.trigger.threshold == 0.85
    assert BASEAGENT.get(PruneKnobs).protect_tokens == 40_000
    assert BASEAGENT.get(PruneKnobs).minimum_savings == 20_000
    assert (BASEAGENT.tool_result.limit, BASEAGENT.get(OutputKnobs).unit) == (2_500, "tokens")


@pytest.mark.parametrize(
    ("profile", "threshold", "protects", "triggers"),
    [("baseagent-long", 0.70, 30_000, 117_601), ("baseagent-complex", 0.90, 60_000, 151_201)],
)
def test_tuning_profiles(profile: str, threshold: float, protects: int, triggers: int) -> None:
    policy = PRESETS[profile]
    assert (policy.trigger.threshold, policy.get(PruneKnobs).protect_tokens) == (
        threshold,
        protects,
    )
    assert plan_budget(policy).trigger_tokens == triggers
    assert policy.stages == BASEAGENT.stages

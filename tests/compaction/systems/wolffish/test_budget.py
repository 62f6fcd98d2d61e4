"""Wolffish's sizes: the first two layers of the defense, the window budgets and the constants."""

import pytest

from compaction.core.budget import Budget, plan
from compaction.core.estimate import LastUsage, measure
from compaction.core.presets import PRESETS
from compaction.core.transcript import Transcript, TranscriptEntry
from compaction.systems.kit.settings import ConductKnobs, TailKnobs, TargetKnobs, WritingKnobs
from compaction.systems.wolffish.settings import ExcerptKnobs
from models_registry.catalog import look_up_model

WOLFFISH = PRESETS["wolffish"]


def plan_budget(window: int | None, reserve: int | None = None) -> Budget:
    budget = plan(WOLFFISH, window, output_reserve=reserve)
    assert budget is not None
    return budget


@pytest.mark.parametrize(
    ("model", "window", "reserve", "input_budget"),
    [
        ("DeepSeek V4 Pro", 1_000_000, 32_768, 967_232),
        ("Claude Opus 4.6+", 1_000_000, 0, 1_000_000),
        ("Claude Sonnet 4.6", 1_000_000, 0, 1_000_000),
        ("Grok 4.3", 1_000_000, 65_536, 934_464),
        ("GPT-5", 400_000, 65_536, 334_464),
        ("GPT-4.1", 1_000_000, 32_768, 967_232),
        ("Kimi K2", 262_144, 65_536, 196_608),
        ("Qwen 3.7 Max", 1_000_000, 65_536, 934_464),
    ],
)
def test_the_input_budget_is_the_window_minus_the_models_output_reserve(
    model: str, window: int, reserve: int, input_budget: int
) -> None:
    assert plan_budget(window, reserve).input == input_budget


@pytest.mark.parametrize(
    ("name", "input_budget"),
    [
        ("deepseek-v4-pro", 967_232),
        ("claude-opus-4-6", 1_000_000),
        ("claude-sonnet-4-6", 1_000_000),
        ("x-ai/grok-4.3", 934_464),
        ("gpt-5", 334_464),
        ("moonshotai/kimi-k2-0905", 196_608),
        ("qwen/qwen3.7-max", 934_464),
    ],
)
def test_the_registry_gives_these_budgets(name: str, input_budget: int) -> None:
    entry = look_up_model(name)
    assert entry is not None
    assert (
        plan_budget(entry.values["context_window_size"], entry.values["output_reserve"]).input
        == input_budget
    )


def test_the_debug_line_threshold_of_the_967k_budget() -> None:
    budget = plan_budget(1_000_000, 32_768)
    assert budget.threshold == 725_424  # threshold=725424 (75%)
    assert not budget.is_over(725_424)
    assert budget.is_over(725_425)


def test_it_triggers_above_75_percent_and_compacts_down_to_50() -> None:
    assert (WOLFFISH.trigger.threshold, WOLFFISH.get(TargetKnobs).ratio) == (0.75, 0.50)
    budget = plan_budget(200_000)
    assert (budget.trigger_tokens, budget.target) == (150_001, 100_000)


def test_an_unknown_window_is_taken_for_8000_tokens() -> None:
    assert plan_budget(None).window == 8_000


def test_a_reserve_never_takes_more_than_half_of_a_window() -> None:
    assert plan_budget(100_000, 65_536).input == 50_000


def make_transcript(characters: int) -> Transcript:
    return Transcript(entries=(TranscriptEntry(seq=1, role="tool", content="x" * characters),))


def test_layer_1_counts_one_and_a_half_characters_to_a_token() -> None:
    assert WOLFFISH.estimate.chars_per_token == 1.5
    assert (
        measure(make_transcript(1_470), WOLFFISH).tokens == 1_000
    )  # with 30 characters of framing
    assert measure(make_transcript(1_471), WOLFFISH).tokens == 1_001


def test_layer_2_takes_the_higher_of_the_estimate_and_the_last_count() -> None:
    def measure_tokens(input_tokens: int) -> int:
        return measure(
            make_transcript(1_470),
            WOLFFISH,
            LastUsage(tokens=input_tokens + 999, input=input_tokens, after_seq=1),
        ).tokens

    assert measure_tokens(541_090) == 541_090
    assert measure_tokens(900) == 1_000


def test_the_debug_line_s_effective_tokens() -> None:
    """charEstimate=839203 lastKnown=541090 effective=839203."""
    characters = int(839_203 * 1.5) - 30
    measurement = measure(
        make_transcript(characters), WOLFFISH, LastUsage(tokens=541_090, input=541_090, after_seq=1)
    )
    assert (measurement.tokens, measurement.source) == (839_203, "estimated")


def test_constants() -> None:
    assert WOLFFISH.get(TailKnobs).count == 3  # PROTECT_RECENT
    assert WOLFFISH.get(TailKnobs).min_chars == 500  # MIN_COMPACTION_SIZE
    excerpt = WOLFFISH.get(ExcerptKnobs)
    assert excerpt.expected_ratio == 0.25  # COMPACTION_RATIO
    assert (excerpt.head_ratio, excerpt.head_cap, excerpt.tail_ratio, excerpt.tail_cap) == (
        0.15,
        6_000,
        0.08,
        3_000,
    )
    assert WOLFFISH.summary.retries == 5
    assert list(WOLFFISH.get(WritingKnobs).backoff) == [1, 2, 4, 8, 16]
    assert WOLFFISH.trigger.phases == ("before_request", "on_overflow", "manual")
    assert WOLFFISH.get(ConductKnobs).runtime_hint

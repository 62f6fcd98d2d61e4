"""NeuroLink's sizes, section by section: budget check, estimation, windows, reserves, warnings."""

from typing import Any

import pytest

from compaction.core.budget import plan
from compaction.core.knobs import PolicyError
from compaction.core.presets import PRESETS
from compaction.systems.kit.budget import compute_available_input, compute_reserve
from compaction.systems.kit.settings import BudgetKnobs, ThresholdKnobs, WindowKnobs
from compaction.systems.neurolink.budget_check import (
    Breakdown,
    check_context_budget,
    estimate_messages_tokens,
    estimate_tokens,
    truncate_to_token_budget,
)

NEUROLINK = PRESETS["neurolink"]


def test_constants_of_the_token_estimation() -> None:
    knobs = NEUROLINK.estimate
    assert knobs.chars_per_token == 4
    assert knobs.code_chars_per_token == 3
    assert knobs.safety_multiplier == 1.15
    assert knobs.per_message == 4
    assert knobs.per_conversation == 24
    assert knobs.image_tokens == 1_024


@pytest.mark.parametrize(
    ("provider", "multiplier"),
    [
        ("anthropic", 1.23),
        ("google-ai", 1.18),
        ("vertex", 1.18),
        ("mistral", 1.26),
        ("openai", 1.0),
        ("azure", 1.0),
        ("bedrock", 1.23),
        ("ollama", 1.0),
        ("litellm", 1.0),
        ("huggingface", 1.0),
        ("sagemaker", 1.0),
    ],
)
def test_provider_multipliers(provider: str, multiplier: float) -> None:
    assert NEUROLINK.estimate.family_multiplier.get(provider, 1) == multiplier
    assert estimate_tokens("x" * 40_000, provider) == round(10_000 * multiplier * 1.15)


def test_estimate_tokens_is_characters_by_four_times_multiplier_times_margin() -> None:
    assert estimate_tokens("x" * 400) == 115
    assert estimate_tokens("x" * 401) == 117  # 101 × 1.15 = 116.15
    assert estimate_tokens("") == 0


def test_code_has_three_characters_to_a_token() -> None:
    assert estimate_tokens("x" * 300, "openai", True) == 115
    assert estimate_tokens("x" * 300, "openai") == 87  # 75 × 1.15 = 86.25


def test_estimate_messages_tokens_adds_framing() -> None:
    messages = [{"role": "user", "content": "x" * 400}, {"role": "assistant", "content": "x" * 400}]
    assert estimate_messages_tokens(messages) == 24 + 2 * (115 + 4)
    assert estimate_messages_tokens(messages, "anthropic") == 24 + 2 * (142 + 4)
    assert estimate_messages_tokens([]) == 24


def test_an_image_is_1024_tokens() -> None:
    picture = {
        "role": "user",
        "content": [
            {"type": "text", "text": "x" * 400},
            {"type": "image_url", "image_url": {"url": "data:"}},
        ],
    }
    assert estimate_messages_tokens([picture]) == 24 + 4 + 115 + 1_024


def test_truncate_to_token_budget_cuts_at_a_sentence_and_appends_dots() -> None:
    text = (
        "The first sentence. The second sentence. "
        "The third sentence which goes on for quite a while without an end"
    )
    result, is_truncated = truncate_to_token_budget(text, 16)
    assert (result, is_truncated) == ("The first sentence. The second sentence....", True)
    assert estimate_tokens(result) <= 16
    assert truncate_to_token_budget(text, 1_000) == (text, False)


def test_constants_of_the_context_windows() -> None:
    assert NEUROLINK.get(WindowKnobs).unknown == 128_000  # DEFAULT_CONTEXT_WINDOW
    assert NEUROLINK.get(BudgetKnobs).output_reserve == {"ratio": 0.35, "max": 64_000}


@pytest.mark.parametrize(
    ("provider", "window"),
    [
        ("anthropic", 200_000),
        ("openai", 128_000),
        ("google-ai", 1_048_576),
        ("vertex", 1_048_576),
        ("bedrock", 200_000),
        ("azure", 128_000),
        ("mistral", 128_000),
        ("ollama", 128_000),
        ("litellm", 128_000),
        ("huggingface", 32_000),
        ("sagemaker", 128_000),
        ("somebody-else", 128_000),
    ],
)
def test_an_unknown_model_has_its_providers_default_window(provider: str, window: int) -> None:
    budget = plan(NEUROLINK, None, family=provider)
    assert budget is not None
    assert budget.window == window


@pytest.mark.parametrize(
    ("window", "reserve"),
    [(200_000, 64_000), (128_000, 44_800), (8_192, 2_868), (1_048_576, 64_000)],
)
def test_output_reserve_is_35_percent_but_64000_at_most(window: int, reserve: int) -> None:
    assert compute_reserve(NEUROLINK.get(BudgetKnobs), window) == reserve
    assert compute_available_input(NEUROLINK.get(BudgetKnobs), window, reserve) == window - reserve


def test_an_explicit_max_tokens_is_the_reserve() -> None:
    explicit = plan(NEUROLINK, 200_000, max_tokens=8_000)
    assert explicit is not None
    assert explicit.input == 192_000


def test_compaction_triggers_at_80_percent_of_the_available_input() -> None:
    budget = plan(NEUROLINK, 200_000)
    assert budget is not None
    assert (budget.input, budget.trigger_tokens) == (136_000, 108_800)
    assert budget.is_over(108_800)
    assert not budget.is_over(108_799)


def test_after_a_failure_the_target_is_70_percent_of_the_available_input() -> None:
    budget = plan(NEUROLINK, 200_000)
    assert budget is not None
    assert budget.reduce_for_recovery().target == 95_200
    small = plan(NEUROLINK, 8_192)
    assert small is not None
    assert small.reduce_for_recovery().target == 3_726  # floor(5,324 × 0.7)


def build_arguments(**parts: Any) -> dict[str, Any]:
    return {"window": 200_000, "provider": "openai"} | parts


def test_the_breakdown_adds_up_to_the_estimate() -> None:
    tool = {"name": "read_file", "parameters": {"type": "object"}}
    check = check_context_budget(
        **build_arguments(
            system_prompt="x" * 400,
            conversation_messages=[{"role": "user", "content": "x" * 400}],
            current_prompt="x" * 800,
            tool_definitions=[tool, tool],
            file_attachments=[{"content": "x" * 4_000}, {"content": "x" * 4_000}],
        )
    )
    tool_length = len('{"name":"read_file","parameters":{"type":"object"}}')
    assert check.breakdown == Breakdown(
        system_prompt=115,
        conversation_history=24 + 4 + 115,
        current_prompt=230,
        tool_definitions=2 * -(-tool_length // 4),
        file_attachments=2 * 1_150,
    )
    assert check.estimated_input_tokens == check.breakdown.total
    assert check.available_input_tokens == 136_000
    assert check.usage_ratio == check.estimated_input_tokens / 136_000
    assert (check.within_budget, check.should_compact) == (True, False)


def test_over_the_threshold_it_says_compact_and_over_the_budget_it_says_so() -> None:
    full = check_context_budget(**build_arguments(current_prompt="x" * 400_000))
    assert (full.estimated_input_tokens, full.should_compact, full.within_budget) == (
        115_000,
        True,
        True,
    )
    over = check_context_budget(**build_arguments(current_prompt="x" * 480_000))
    assert (over.estimated_input_tokens, over.should_compact, over.within_budget) == (
        138_000,
        True,
        False,
    )
    assert over.usage_ratio is not None
    assert over.usage_ratio > 1


def test_the_threshold_can_be_given() -> None:
    prompt = build_arguments(current_prompt="x" * 400_000)
    assert not check_context_budget(**prompt, compaction_threshold=0.9).should_compact
    assert check_context_budget(**prompt, compaction_threshold=0.5).should_compact
    with pytest.raises(PolicyError, match=r"trigger\.threshold"):
        check_context_budget(**prompt, compaction_threshold=1.2)


def test_max_tokens_leaves_more_or_less_for_the_input() -> None:
    assert (
        check_context_budget(**build_arguments(max_tokens=100_000)).available_input_tokens
        == 100_000
    )


def test_a_request_of_nothing_costs_nothing() -> None:
    check = check_context_budget(**build_arguments())
    assert (check.estimated_input_tokens, check.usage_ratio, check.breakdown) == (0, 0, Breakdown())


def test_the_check_runs_before_every_call_and_on_overflow_and_by_hand() -> None:
    assert NEUROLINK.trigger.phases == ("before_request", "on_overflow", "manual")
    assert (NEUROLINK.trigger.threshold, NEUROLINK.get(ThresholdKnobs).strict) == (0.80, False)

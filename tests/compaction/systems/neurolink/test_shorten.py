"""A text cut to a number of tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.systems.neurolink.budget_check import estimate_tokens, truncate_to_token_budget

PROSE = "One two three. Four five six. Seven eight nine ten eleven twelve."


def test_a_text_that_fits_comes_back_as_it_is() -> None:
    assert truncate_to_token_budget(PROSE, 1_000) == (PROSE, False)
    assert truncate_to_token_budget("", 0) == ("", False)


def test_it_is_cut_after_a_sentence_and_says_so() -> None:
    assert truncate_to_token_budget(PROSE, 12, policy=ONECLAW) == (
        "One two three. Four five six....",
        True,
    )


def test_without_a_sentence_near_the_end_it_is_cut_before_a_word() -> None:
    assert truncate_to_token_budget("alpha beta gamma delta epsilon", 5, policy=ONECLAW) == (
        "alpha beta gamma...",
        True,
    )


def test_without_a_word_it_is_cut_anywhere() -> None:
    assert truncate_to_token_budget("x" * 100, 5, policy=ONECLAW) == ("x" * 20 + "...", True)


def test_chinese_sentences_end_too() -> None:
    text = "这是第一句。这是第二句。这是第三句。这是第四句。"
    assert truncate_to_token_budget(text, 4, policy=ONECLAW) == (
        "这是第一句。这是第二句。...",
        True,
    )


def test_the_family_counts() -> None:
    openai, anthropic = (
        truncate_to_token_budget("x" * 4_000, 100, provider)[0]
        for provider in ("openai", "anthropic")
    )
    assert len(anthropic) < len(openai)


def test_where_not_even_the_dots_fit_nothing_is_left() -> None:
    assert truncate_to_token_budget(PROSE, 0) == ("", True)


@given(st.text(max_size=400), st.integers(0, 120), st.sampled_from(["neurolink", "features"]))
def test_what_comes_back_is_never_over_its_budget(text: str, tokens: int, way: str) -> None:
    policy = Policy.parse(
        {
            "estimate": {
                "method": "features" if way == "features" else "characters",
                "rounding": "ceil",
            }
        },
        ONECLAW,
    )
    cut, was_cut = truncate_to_token_budget(text, tokens, policy=policy)
    assert was_cut == (cut != text)
    assert estimate_tokens(cut, policy=policy) <= tokens


@pytest.mark.parametrize("tokens", [10, 1_000])
def test_a_large_text_is_no_trouble(tokens: int) -> None:
    cut, was_cut = truncate_to_token_budget("word " * 200_000, tokens)
    assert was_cut
    assert 0.9 * tokens < estimate_tokens(cut) <= tokens

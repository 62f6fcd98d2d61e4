"""NeuroLink's calls for programs: statistics for another model, and errors for length."""

from typing import Any

import pytest

from chatcore.models import Session
from chatcore.providers.errors import ContextOverflow, ProviderRateLimited
from compaction.models import CompactionRun
from compaction.systems.neurolink.shortcuts import (
    compact_session,
    get_context_overflow_provider,
    get_context_stats,
    is_context_overflow_error,
    needs_compaction,
)
from models_registry.models import AiModel, Provider
from tests.support.compaction_sessions import fill_session, list_summary_calls, summarize_or_chat
from tests.support.preset_sessions import set_policy
from tests.support.scripted_model import ScriptedModel


@pytest.fixture
def talk(session: Session, scripted: ScriptedModel) -> Session:
    talk = set_policy(session, "neurolink", scripted, "openai", context_window_size=20_000)
    fill_session(talk, messages=14)
    return talk


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("provider", "name", "available", "factor"),
    [
        ("", "", 13_000, 1.0),
        ("anthropic", "claude-sonnet-4-20250514", 136_000, 1.23),
        ("", "gpt-4", 5_324, 1.0),
        ("bedrock", "us.amazon.nova-pro-v1:0", 236_000, 1.23),
        ("vertex", "a-model-of-tomorrow", 984_576, 1.18),  # the family's own window
        ("huggingface", "", 20_800, 1.0),
    ],
)
def test_stats_are_those_of_the_provider_and_model_that_are_named(
    talk: Session, provider: str, name: str, available: int, factor: float
) -> None:
    Provider.objects.filter(name="openai").update(is_active=True)
    AiModel.objects.filter(name="gpt-4").update(is_active=True)
    Session.objects.filter(pk=talk.pk).update(tools=[])  # they are counted without the factor
    own_stats = get_context_stats(talk.pk)
    stats = get_context_stats(talk.pk, provider, name)
    assert own_stats is not None
    assert stats is not None
    assert stats.available_input_tokens == available
    assert stats.estimated_input_tokens == pytest.approx(
        own_stats.estimated_input_tokens * factor, rel=0.01
    )
    assert needs_compaction(talk.pk, provider, name) == (name == "gpt-4")
    assert stats.message_count == 14


@pytest.mark.django_db(transaction=True)
def test_a_session_is_compacted_by_the_summarization_provider_and_model(
    talk: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat()
    vertex = Provider.objects.create(
        name="vertex", protocol="openai", base_url=scripted.base_url, timeout_seconds=20
    )
    AiModel.objects.create(provider=vertex, name="gemini-2.5-flash", context_window_size=1_048_576)
    with pytest.raises(TypeError, match="needs a summarization_model"):
        compact_session(talk.pk, summarization_provider="vertex")
    result = compact_session(
        talk.pk, summarization_provider="vertex", summarization_model="gemini-2.5-flash"
    )
    assert result is not None
    assert result.stages_used == ("summarize",)
    assert CompactionRun.objects.get().model == "vertex/gemini-2.5-flash"
    assert {request.json["model"] for request in list_summary_calls(scripted)} == {
        "gemini-2.5-flash"
    }


@pytest.mark.parametrize(
    ("text", "provider"),
    [
        ("This model's maximum context length is 8192 tokens.", "openai"),
        ("Please reduce the length of the messages.", "openai"),
        ("content_length_exceeded", "azure"),
        ("The input exceeds the maximum number of tokens allowed (1048576).", "google"),
        ("The content is too long.", "google"),
        ("Input is too long for requested model.", "bedrock"),
        ("The prompt exceeds the model's maximum", "bedrock"),
        ("context length exceeded", "mistral"),
        ("The maximum number of tokens is 32768", "mistral"),
        ("context_length_exceeded", "openrouter"),
        ("prompt is too long: 210000 tokens > 200000 maximum", "anthropic"),
        ("too many tokens", "anthropic"),
    ],
)
def test_the_words_of_each_provider_name_it(text: str, provider: str) -> None:
    assert is_context_overflow_error(text)
    assert get_context_overflow_provider(text) == provider
    assert get_context_overflow_provider({"error": {"message": text}}) == provider
    assert get_context_overflow_provider(ValueError(text)) == provider
    error = RuntimeError("The call failed.")
    error.__cause__ = ValueError(text)
    assert get_context_overflow_provider(error) == provider


@pytest.mark.parametrize(
    "error",
    [
        "RESOURCE_EXHAUSTED: quota exceeded",  # our own rule: throttling is no overflow
        "Too many tokens, please wait before trying again.",
        ProviderRateLimited("The provider is throttling: too many tokens per minute"),
        {"message": "bad key"},
        ValueError(),
        None,
    ],
)
def test_other_errors_are_none(error: Any) -> None:
    assert not is_context_overflow_error(error)
    assert get_context_overflow_provider(error) is None


def test_an_overflow_in_nobodys_words_is_one() -> None:
    error = ContextOverflow("It refused with 413.")
    assert is_context_overflow_error(error)
    assert get_context_overflow_provider(error) is None

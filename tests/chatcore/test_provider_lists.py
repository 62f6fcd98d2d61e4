"""What a provider's own list says of its models is used where nobody said anything."""

import datetime
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from chatcore.providers.model_lists import read_list
from models_registry.models import AiModel, Provider
from models_registry.provider_lists import fill_unknown_values, parse_row
from tests.support.scripted_model import ScriptedModel

ROWS: list[tuple[Any, dict[str, Any]]] = [
    (  # OpenRouter
        {
            "id": "m",
            "context_length": 200_000,
            "top_provider": {"context_length": 131_072, "max_completion_tokens": 16_384},
            "supported_parameters": ["temperature", "tools"],
            "architecture": {"input_modalities": ["text", "image"]},
        },
        {
            "context_window_size": 131_072,
            "max_output_tokens": 16_384,
            "supports_tools": True,
            "supports_images": True,
        },
    ),
    (  # OpenRouter, of a model that can do little
        {"supported_parameters": [], "architecture": {"input_modalities": ["text"]}},
        {"supports_tools": False, "supports_images": False},
    ),
    ({"id": "m", "max_model_len": 32_768}, {"context_window_size": 32_768}),  # vLLM
    (  # llama.cpp
        {"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 131_072}},
        {"context_window_size": 4096},
    ),
    (  # Anthropic
        {
            "id": "m",
            "max_input_tokens": 1_000_000,
            "max_tokens": 64_000,
            "capabilities": {"image_input": {"supported": True}},
        },
        {"context_window_size": 1_000_000, "max_output_tokens": 64_000, "supports_images": True},
    ),
    (  # Mistral
        {"max_context_length": 32_000, "capabilities": {"function_calling": True, "vision": False}},
        {"context_window_size": 32_000, "supports_tools": True, "supports_images": False},
    ),
    ({"context_length": "8192", "capabilities": [], "meta": None, "max_tokens": True}, {}),
]


@pytest.mark.parametrize(("row", "values"), ROWS)
def test_each_list_is_read_in_its_own_words(row: Any, values: dict[str, Any]) -> None:
    assert parse_row(row) == values


def learn_from_list(provider: Provider) -> int:
    rows = read_list(provider).rows
    return fill_unknown_values(provider, rows, date=datetime.date(2026, 11, 28))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("protocol", Provider.Protocol.values)
def test_only_what_is_unknown_is_filled_in_and_says_where_from(
    model: AiModel, scripted: ScriptedModel, protocol: str
) -> None:
    base_url = scripted.base_url if protocol == "openai" else scripted.anthropic_base_url
    Provider.objects.update(protocol=protocol, base_url=base_url, encrypted_api_key="")
    provider = Provider.objects.get()
    provider.api_key = "k"
    provider.save()
    AiModel.objects.update(context_window_size=None)
    assert learn_from_list(provider) == 1
    model.refresh_from_db()
    assert (model.context_window_size, model.values_source) == (8192, "the list of scripted")
    assert model.values_date is not None
    scripted.window = 16_384
    assert learn_from_list(provider) == 0  # what is known stays, whoever said it
    model.refresh_from_db()
    assert model.context_window_size == 8192


@pytest.mark.django_db(transaction=True)
def test_a_provider_that_is_away_teaches_nothing(model: AiModel) -> None:
    Provider.objects.update(base_url="http://127.0.0.1:9/v1")
    assert learn_from_list(Provider.objects.get()) == 0


@pytest.mark.django_db(transaction=True)
def test_the_test_of_a_provider_in_the_settings_learns(
    client: Client, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    user.is_superuser = user.is_staff = True
    user.save()
    AiModel.objects.update(context_window_size=None)
    client.force_login(user)
    answer = client.post(reverse("try_provider", args=[model.provider.pk]))
    assert "Its list filled in what was unknown of 1 model." in answer.content.decode()
    assert AiModel.objects.get().context_window_size == 8192
    assert json.loads(json.dumps(AiModel.objects.get().catalog_values)) == {
        "context_window_size": 8192
    }

"""Other names of models: an operator's, and those of the side models of programs."""

from typing import Any

import pytest
from anthropic import Anthropic
from django.core.exceptions import ImproperlyConfigured
from openai import NotFoundError, OpenAI

from chatcore.base.environment import read_pairs
from models_registry.models import AiModel
from tests.support.anthropic_client import HELLO, gpt
from tests.support.openai_client import client
from tests.support.scripted_model import ScriptedModel

__all__ = ["client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)
HAIKU = "claude-haiku-4-5-20251001"
PRICED = {"context_window_size": 65_536, "supports_tools": True}


@pytest.fixture(autouse=True)
def price_model(model: AiModel) -> None:
    AiModel.objects.filter(pk=model.pk).update(input_price=3, output_price=15, is_default=True)


def add_model(model: AiModel, name: str, **values: Any) -> AiModel:
    return AiModel.objects.create(provider=model.provider, name=name, **(PRICED | values))


def ask(client: OpenAI, name: str, scripted: ScriptedModel) -> str:
    """Return the name of the model that the provider was asked for."""
    answer = client.chat.completions.create(model=name, messages=[{"role": "user", "content": "?"}])
    assert answer.model == name
    asked: str = scripted.requests[-1].json["model"]
    return asked


@pytest.mark.parametrize("name", [HAIKU, "gpt-5-mini", "anthropic/claude-3-5-haiku-latest"])
def test_a_side_model_is_the_cheapest_that_can_do_it(
    client: OpenAI, model: AiModel, scripted: ScriptedModel, name: str
) -> None:
    assert ask(client, name, scripted) == "test-model"
    add_model(model, "cheap", input_price=1, output_price=5)
    add_model(model, "tiny", input_price=0, output_price=0, context_window_size=8_192)
    add_model(model, "mute", input_price=0, output_price=0, supports_tools=False)
    add_model(model, "gone", input_price=0, output_price=0, is_active=False)
    assert ask(client, name, scripted) == "cheap"


def test_a_side_model_that_is_there_is_itself(
    client: OpenAI, model: AiModel, scripted: ScriptedModel
) -> None:
    add_model(model, HAIKU, input_price=99, output_price=99)
    assert ask(client, HAIKU, scripted) == HAIKU


def test_a_large_model_is_not_replaced(client: OpenAI) -> None:
    with pytest.raises(NotFoundError):
        client.models.retrieve("claude-opus-5")


def test_the_agents_of_claude_code_find_their_model(gpt: Anthropic) -> None:
    answer = gpt.messages.create(model=HAIKU, max_tokens=10, messages=HELLO)
    assert answer.model == HAIKU


def test_an_operator_names_what_is_meant(
    client: OpenAI, model: AiModel, scripted: ScriptedModel, settings: Any
) -> None:
    aliases = {"claude-haiku-*": "small", "claude-heron": "scripted/test-model", "x": "y"}
    settings.CHATCORE = settings.CHATCORE | {"MODEL_ALIASES": aliases}
    add_model(model, "small")
    assert ask(client, HAIKU, scripted) == "small"
    assert ask(client, "claude-heron", scripted) == "test-model"
    models = {each.id: each.to_dict() for each in client.models.list()}
    names = list(models)
    assert models["claude-heron"]["alias_of"] == "scripted/test-model"
    assert "alias_of" not in models["scripted/test-model"]
    assert not any("*" in name or name == "x" for name in names)
    assert client.models.retrieve("claude-heron").id == "claude-heron"
    with pytest.raises(NotFoundError):
        client.models.retrieve("x")


def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATCORE_MODEL_ALIASES", "a=b, claude-*")
    with pytest.raises(ImproperlyConfigured, match="CHATCORE_MODEL_ALIASES has 'claude-\\*'"):
        read_pairs("CHATCORE_MODEL_ALIASES")

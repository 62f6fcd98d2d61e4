"""`/v1/models` for the clients of both APIs, and `/v1/messages/count_tokens`."""

from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from openai import OpenAI

from models_registry.models import AiModel
from tests.support.anthropic_client import (
    HELLO,
    MODEL,
    WEATHER,
    ask_raw,
    claude,
    client,
    get_last_call,
    gpt,
)
from tests.support.openai_client import count_tokens
from tests.support.scripted_model import ScriptedModel

__all__ = ["claude", "client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_anthropics_client_reads_windows_and_limits_of_models(gpt: Anthropic) -> None:
    AiModel.objects.update(max_output_tokens=1000, supports_images=True)
    listed = list(gpt.models.list())
    assert [model.id for model in listed] == [MODEL]
    model: Any = gpt.models.retrieve(MODEL)
    assert model == listed[0]
    assert (model.type, model.display_name, model.lifecycle) == ("model", "test-model", "active")
    assert (model.max_input_tokens, model.max_tokens) == (8192, 1000)
    assert model.created_at.year == 1970
    assert model.capabilities.image_input.supported
    assert not model.capabilities.thinking.supported
    assert gpt.beta.models.retrieve("test-model").id == MODEL


def test_openais_client_reads_the_same_document(gpt: Anthropic, live: Any) -> None:
    AiModel.objects.update(max_output_tokens=1000)
    openai = OpenAI(base_url=f"{live.url}/v1", api_key=str(gpt.api_key))
    model: Any = openai.models.retrieve(MODEL)
    assert (model.id, model.object, model.owned_by) == (MODEL, "model", "scripted")
    assert (model.context_window, model.max_output_tokens) == (8192, 1000)


def test_an_unknown_model_is_told_in_the_form_of_its_client(gpt: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as refusal:
        gpt.models.retrieve("nobody/none")
    assert refusal.value.type == "not_found_error"


def test_tokens_are_counted_and_nothing_is_sent(client: Anthropic, scripted: ScriptedModel) -> None:
    few = client.messages.count_tokens(model=MODEL, messages=HELLO).input_tokens
    long: Any = [{"role": "user", "content": "lisbon " * 400}]
    many = client.messages.count_tokens(
        model=MODEL, messages=long, system="Be brief.", tools=[WEATHER]
    ).input_tokens
    assert 0 < few < 100
    assert 600 < many < 1000
    assert not scripted.requests


def test_a_count_is_of_the_whole_request_however_long(gpt: Anthropic) -> None:
    history: Any = [
        {"role": "assistant" if n % 2 else "user", "content": f"{n} " + "lisbon " * 400}
        for n in range(41)
    ]
    assert gpt.messages.count_tokens(model=MODEL, messages=history).input_tokens > 20_000


def test_a_count_is_what_the_request_is_sent_with(gpt: Anthropic, scripted: ScriptedModel) -> None:
    long: Any = [{"role": "user", "content": "lisbon " * 400}]
    counted = gpt.messages.count_tokens(model=MODEL, messages=long).input_tokens
    raw = ask_raw(gpt, long)
    assert int(raw.headers["x-context-tokens"]) == counted
    assert abs(counted - count_tokens(get_last_call(scripted))) < 100

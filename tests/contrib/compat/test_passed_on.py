"""`/v1/embeddings` and `/v1/completions`, passed on to a provider that has them."""

import json
from decimal import Decimal
from typing import Any

import openai
import pytest
from openai import OpenAI

from chatcore.contrib.budgets.models import UsageSum
from models_registry.models import AiModel, Provider
from tests.support.anthropic_client import speak_anthropic
from tests.support.openai_client import MODEL, client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

LIMITS = ("limit", "remaining")

pytestmark = pytest.mark.django_db(transaction=True)

EMBEDDINGS = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}],
    "model": "test-model",
    "usage": {"prompt_tokens": 2, "total_tokens": 2},
}
COMPLETION: dict[str, Any] = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": 1,
    "model": "test-model",
    "choices": [{"text": " time", "index": 0, "logprobs": None, "finish_reason": "stop"}],
}


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_embeddings_come_from_the_provider(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(body=encode(EMBEDDINGS)))
    raw = client.embeddings.with_raw_response.create(
        model=MODEL, input=["Hi"], encoding_format="float", dimensions=2
    )
    answer = raw.parse()
    assert answer.data[0].embedding == [0.5, 0.25]
    assert answer.usage.total_tokens == 2
    request = scripted.requests[-1]
    assert request.path == "/v1/embeddings"
    assert request.json == {
        "model": "test-model",
        "input": ["Hi"],
        "encoding_format": "float",
        "dimensions": 2,
    }
    limits = {name: int(raw.headers[f"x-ratelimit-{name}-requests"]) for name in LIMITS}
    assert limits["remaining"] == limits["limit"] - 1


def test_what_is_passed_on_is_in_the_usage(
    client: OpenAI, scripted: ScriptedModel, model: AiModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(input_price=2, output_price=0)
    scripted.script(Reply(body=encode(EMBEDDINGS)))
    client.embeddings.create(model=MODEL, input=["Hi"], encoding_format="float")
    row = UsageSum.objects.get()
    assert (row.purpose, row.calls, row.input_tokens) == ("passed_on", 1, 2)
    assert row.cost == Decimal("0.000004")


def test_completions_come_from_the_provider(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(body=encode(COMPLETION)))
    answer = client.completions.create(model=MODEL, prompt="Once upon a", max_tokens=5, echo=True)
    assert answer.choices[0].text == " time"
    assert scripted.requests[-1].path == "/v1/completions"
    assert scripted.requests[-1].json["echo"] is True


def test_completions_are_streamed(client: OpenAI, scripted: ScriptedModel) -> None:
    events = b"data: " + encode(COMPLETION) + b"\n\ndata: [DONE]\n\n"
    scripted.script(Reply(body=events, headers={"Content-Type": "text/event-stream"}))
    chunks = list(client.completions.create(model=MODEL, prompt="Once upon a", stream=True))
    assert [chunk.choices[0].text for chunk in chunks] == [" time"]


@pytest.mark.parametrize("path", ["embeddings", "completions"])
def test_a_model_of_the_other_protocol_is_refused_by_name(
    client: OpenAI, scripted: ScriptedModel, path: str
) -> None:
    speak_anthropic(scripted)
    with pytest.raises(openai.BadRequestError, match=rf"{MODEL}.*has no {path}") as refusal:
        client.post(f"/{path}", cast_to=object, body={"model": MODEL, "input": "Hi"})
    assert (refusal.value.code, refusal.value.param) == ("unsupported_model", "model")
    assert not scripted.requests


def test_an_unknown_field_is_refused_unless_the_operator_allows_it(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    extra: Any = {"model": MODEL, "input": "Hi", "extra_body": {"api_base": "http://elsewhere"}}
    with pytest.raises(openai.BadRequestError) as refusal:
        client.embeddings.create(**extra)
    assert refusal.value.param == "api_base"
    Provider.objects.update(options={"params": ["truncate"]})
    scripted.script(Reply(body=encode(EMBEDDINGS)))
    client.embeddings.create(model=MODEL, input="Hi", extra_body={"truncate": True})
    assert scripted.requests[-1].json["truncate"] is True


def test_a_provider_without_them_says_so(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(status=404, text="There are no embeddings here."))
    with pytest.raises(openai.APIStatusError, match="no embeddings here"):
        client.embeddings.create(model=MODEL, input="Hi")


def test_nothing_to_embed_is_a_bad_request(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        client.embeddings.create(model=MODEL, input="")
    assert refusal.value.param == "input"

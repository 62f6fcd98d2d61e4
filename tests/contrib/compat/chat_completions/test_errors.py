"""Chat completions that fail, and the errors that OpenAI's own client makes of it."""

import gzip
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.openai_client import HELLO, MODEL, client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_address_of_an_image_is_not_fetched(client: OpenAI) -> None:
    question: Any = [
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/cat.png"}}],
        }
    ]
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(model=MODEL, messages=question)
    assert refusal.value.param == "messages[0].content[0].image_url.url"


def test_a_wrong_key_is_an_authentication_error(live: Live, model: AiModel) -> None:
    with pytest.raises(openai.AuthenticationError) as refusal:
        OpenAI(base_url=f"{live.url}/v1", api_key="wrong", max_retries=0).chat.completions.create(
            model=MODEL, messages=HELLO
        )
    assert refusal.value.code == "invalid_api_key"


def test_an_unknown_model_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refusal:
        client.chat.completions.create(model="nobody/none", messages=HELLO)
    assert (refusal.value.code, refusal.value.type) == ("model_not_found", "invalid_request_error")


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "Hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"n": 2}, "n"),
        ({"temperature": 9}, "temperature"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    ],
)
def test_a_wrong_field_is_a_bad_request_that_names_it(
    client: OpenAI, wrong: dict[str, Any], param: str
) -> None:
    body: Any = {"model": MODEL, "messages": HELLO} | wrong
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(**body)
    assert refusal.value.param == param


def test_a_message_over_the_limit_is_too_large(client: OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as refusal:
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "ü" * 140_000}]
        )
    assert (refusal.value.status_code, refusal.value.code) == (413, "request_too_large")


def test_too_many_turns_are_a_rate_limit_error_that_says_when_to_come_again(
    client: OpenAI, settings: Any
) -> None:
    settings.CHATCORE = settings.CHATCORE | {"TURNS_PER_MINUTE": 1}
    client.chat.completions.create(model=MODEL, messages=HELLO)
    with pytest.raises(openai.RateLimitError) as refusal:
        client.chat.completions.create(model=MODEL, messages=HELLO)
    assert refusal.value.code == "rate_limit_exceeded"
    assert int(refusal.value.response.headers["retry-after"]) >= 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("reply", "error", "code"),
    [
        (
            Reply(status=401, text="bad key sk-verysecretkey1"),
            openai.InternalServerError,
            "provider_auth",
        ),
        (
            Reply(status=429, text="slow down", headers={"retry-after": "900"}),
            openai.RateLimitError,
            "rate_limit_exceeded",
        ),
        (Reply(status=422, text="no such parameter"), openai.BadRequestError, "provider_rejected"),
        (Reply(cut_after=0), openai.InternalServerError, "provider_unavailable"),
    ],
)
def test_a_providers_failure_is_an_error_of_its_kind(
    client: OpenAI,
    scripted: ScriptedModel,
    reply: Reply,
    error: type[openai.APIStatusError],
    code: str,
    streamed: bool,
) -> None:
    scripted.default = reply
    with pytest.raises(error) as failed:
        client.chat.completions.create(model=MODEL, messages=HELLO, stream=streamed)
    assert failed.value.code == code
    assert "verysecret" not in failed.value.response.text


def test_a_failure_in_the_middle_of_a_stream_is_raised(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["Good ", "morning"], cut_after=1))
    with pytest.raises(openai.APIError) as failed:
        list(client.chat.completions.create(model=MODEL, messages=HELLO, stream=True))
    assert failed.value.code == "provider_unavailable"


def test_an_address_that_is_none_says_so_in_the_same_form(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refusal:
        client.moderations.create(input="text")
    assert refusal.value.code == "unknown_url"


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/chat/completions", "/v1."),
        ("/responses", "/v1."),
        ("/models", "/v1."),
        ("/openai/v1/chat/completions", "/v1."),
        ("/v1//chat/completions", "/v1."),
        ("/messages", ", without /v1 at its end."),
        ("/anthropic/v1/messages", ", without /v1 at its end."),
        ("/v1/chat/v1/messages", ", without /v1 at its end."),
        ("/v1/v1/messages", ", without /v1 at its end."),
        ("/v1/v1/chat/completions", ", without /v1 at its end."),
    ],
)
def test_a_wrong_base_address_names_the_right_one(live: Live, path: str, address: str) -> None:
    answer = httpx.post(f"{live.url}{path}", json={})
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["code"] == "unknown_url"
    assert f"{live.url}{address}" in error["message"]


def test_a_compressed_body_is_refused_by_its_encoding(client: OpenAI) -> None:
    answer = httpx.post(
        f"{client.base_url}chat/completions",
        content=gzip.compress(b"{}"),
        headers={
            "authorization": f"Bearer {client.api_key}",
            "content-type": "application/json",
            "content-encoding": "gzip",
        },
    )
    assert answer.status_code == 415
    assert "gzip" in answer.json()["error"]["message"]

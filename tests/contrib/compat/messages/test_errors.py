"""Refusals of `/v1/messages`, and the errors that Anthropic's own client makes of them."""

from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import Anthropic

from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.anthropic_client import HELLO, MODEL, ask, build_body, claude, client, gpt
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["claude", "client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_wrong_key_is_an_authentication_error(live: Live, model: AiModel) -> None:
    stranger = Anthropic(base_url=live.url, api_key="wrong", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError) as refusal:
        ask(stranger)
    assert refusal.value.type == "authentication_error"
    assert refusal.value.body == {
        "type": "error",
        "error": {"type": "authentication_error", "message": refusal.value.api_message},
        "request_id": refusal.value.request_id,
    }


def test_a_long_body_without_a_key_is_refused_before_it_is_read(live: Live) -> None:
    answer = httpx2.post(f"{live.url}/v1/messages", content=b" " * 100_000, timeout=60)
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")


def test_an_unknown_model_is_not_found(gpt: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as refusal:
        ask(gpt, model="nobody/none")
    assert refusal.value.type == "not_found_error"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "Hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_use"}]}]},
            "messages[0].content[0].type",
        ),
        # What is not known is left out, and here nothing is left.
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages"),
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"temperature": 9}, "temperature"),
        ({"tools": [{"name": "a", "input_schema": 3}]}, "tools[0].input_schema"),
        ({"mcp_servers": [{"type": "url"}]}, "mcp_servers"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_a_wrong_field_is_named(
    live: Live, gpt: Anthropic, wrong: dict[str, Any], field: str
) -> None:
    body: Any = {"model": MODEL, "max_tokens": 9, "messages": HELLO} | wrong
    answer = httpx2.post(
        f"{live.url}/v1/messages", json=body, headers={"x-api-key": str(gpt.api_key)}, timeout=60
    )
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert answer.json()["error"]["message"].startswith(f"{field}:")


def test_an_address_of_an_image_is_not_fetched(gpt: Anthropic) -> None:
    image: Any = {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/cat.png"}}
    with pytest.raises(anthropic.BadRequestError, match=r"content\[0\].source.type"):
        ask(gpt, [{"role": "user", "content": [image]}])


def test_a_message_larger_than_the_window_is_told_as_anthropic_tells_it(gpt: Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        ask(gpt, [{"role": "user", "content": "lisbon " * 8000}])


def test_a_provider_that_throttles_is_a_rate_limit(gpt: Anthropic, scripted: ScriptedModel) -> None:
    scripted.default = Reply(status=429, text="slow down", headers={"retry-after": "1"})
    with pytest.raises(anthropic.RateLimitError) as refusal:
        ask(gpt)
    assert refusal.value.type == "rate_limit_error"


@pytest.mark.lasting
def test_an_overloaded_provider_is_told_as_such(gpt: Anthropic, scripted: ScriptedModel) -> None:
    scripted.default = Reply(status=529, text="Overloaded", headers={"retry-after": "7"})
    with pytest.raises(anthropic.APIStatusError) as refusal:
        ask(gpt)
    assert (refusal.value.status_code, refusal.value.type) == (529, "overloaded_error")


def test_a_full_server_is_overloaded(gpt: Anthropic, settings: Any) -> None:
    settings.CHATCORE = settings.CHATCORE | {"TURNS_AT_ONCE": 0}
    with pytest.raises(anthropic.OverloadedError) as refusal:
        ask(gpt)
    assert refusal.value.type == "overloaded_error"
    assert int(refusal.value.response.headers["retry-after"]) > 0


def test_a_stream_that_breaks_ends_with_an_error(
    client: Anthropic, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="A long story.", chunks=["A ", "long ", "story."], cut_after=2))
    with pytest.raises(anthropic.APIStatusError), client.messages.stream(**build_body()) as stream:
        stream.get_final_message()


def test_another_path_is_not_found_in_the_same_form(gpt: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as refusal:
        gpt.messages.batches.list()
    assert refusal.value.type == "not_found_error"

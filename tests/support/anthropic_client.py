"""Anthropic's own client for the live server, over models of both protocols."""

from typing import Any

import pytest
from anthropic import Anthropic, DefaultHttpxClient
from django.contrib.auth.models import User

from chatcore.base.net.certificates import get_ssl_context
from models_registry.models import AiModel, Provider
from tests.conftest import Live
from tests.support.openai_client import create_key
from tests.support.scripted_model import Received, ScriptedModel

MODEL = "scripted/test-model"
HELLO: Any = [{"role": "user", "content": "Hello?"}]
WEATHER: Any = {
    "name": "weather",
    "description": "The weather now.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
PROTOCOLS = ("openai", "anthropic")


@pytest.fixture(params=PROTOCOLS)
def client(request: Any, live: Live, user: User, model: AiModel, scripted: ScriptedModel) -> Any:
    """A client of a model that is reached by this protocol."""
    if request.param == "anthropic":
        speak_anthropic(scripted)
    return create_client(live.url, user)


@pytest.fixture
def claude(live: Live, user: User, model: AiModel, scripted: ScriptedModel) -> Anthropic:
    """A client of a model that is reached by Anthropic's protocol."""
    speak_anthropic(scripted)
    return create_client(live.url, user)


@pytest.fixture
def gpt(live: Live, user: User, model: AiModel) -> Anthropic:
    """A client of a model that is reached by OpenAI's protocol."""
    return create_client(live.url, user)


def create_client(url: str, user: User, **other: Any) -> Anthropic:
    """Create the official client. It retries nothing unless `max_retries` is given."""
    http_client = DefaultHttpxClient(verify=get_ssl_context())  # as in openai_client
    options = {"max_retries": 0, "timeout": 60, "http_client": http_client, **other}
    return Anthropic(base_url=url, api_key=create_key(user), **options)


def speak_anthropic(scripted: ScriptedModel) -> None:
    Provider.objects.update(
        protocol=Provider.Protocol.ANTHROPIC, base_url=scripted.anthropic_base_url
    )


def ask(client: Anthropic, messages: Any = HELLO, **other: Any) -> Any:
    """Return the answer to some messages."""
    return client.messages.create(**build_body(messages, **other))


def ask_raw(client: Anthropic, messages: Any = HELLO, **other: Any) -> Any:
    """Return the response with its headers."""
    return client.messages.with_raw_response.create(**build_body(messages, **other))


def build_body(messages: Any = HELLO, **other: Any) -> Any:
    return {"model": MODEL, "max_tokens": 500, "messages": messages} | other


def list_calls(scripted: ScriptedModel) -> list[Received]:
    return [
        request
        for request in scripted.requests
        if request.path.endswith(("completions", "messages"))
    ]


def get_last_call(scripted: ScriptedModel) -> dict[str, Any]:
    return list_calls(scripted)[-1].json

"""OpenAI's own client for the live server, and a model that refuses requests over its window."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken
from openai import DefaultHttpxClient, OpenAI

from chatcore.base.net.certificates import get_ssl_context
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.scripted_model import Received, ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply, count_usage

WINDOW = 8192
MODEL = "scripted/test-model"
HELLO: Any = [{"role": "user", "content": "Hello?"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather now.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture
def client(live: Live, user: User, model: AiModel) -> OpenAI:
    return create_client(live.url, user)


def create_key(user: User) -> str:
    return str(AuthToken.objects.create(user)[1])


def create_client(url: str, user: User, **other: Any) -> OpenAI:
    """Create the official client. It retries nothing unless `max_retries` is given."""
    # A client that reads the certificates anew takes 30 ms of CPU.
    http_client = DefaultHttpxClient(verify=get_ssl_context())
    options = {"max_retries": 0, "timeout": 60, "http_client": http_client, **other}
    return OpenAI(base_url=f"{url}/v1", api_key=create_key(user), **options)


def count_tokens(request: dict[str, Any]) -> int:
    """Count a request's tokens as the scripted server does: four characters are one token."""
    return count_usage(Reply(), request)[0]


def limit_window(scripted: ScriptedModel, reply: Callable[[dict[str, Any]], Reply]) -> None:
    """Let the model answer with `reply`, and refuse requests that are longer than its window."""

    def answer(request: dict[str, Any]) -> Reply:
        token_count = count_tokens(request)
        return make_overflow(token_count, WINDOW) if token_count > WINDOW else reply(request)

    scripted.default = answer


def list_sizes(scripted: ScriptedModel) -> list[int]:
    return [count_tokens(request.json) for request in list_completions(scripted)]


def list_completions(scripted: ScriptedModel) -> list[Received]:
    return [request for request in scripted.requests if request.path.endswith("completions")]


def read_arguments(call: Any) -> Any:
    return json.loads(call.function.arguments)

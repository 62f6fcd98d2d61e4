"""OpenAI's own client pointed at the live server, and a model that refuses what is longer than its window."""

import json
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from knox.models import AuthToken
from openai import OpenAI

from tests.support.scripted import Received, ScriptedModel, overflow
from tests.support.scripted_wire import Reply, counts

WINDOW = 8192
MODEL = "scripted/test-model"


def key_of(user: User) -> str:
    return str(AuthToken.objects.create(user)[1])


def client_of(url: str, user: User, **other: Any) -> OpenAI:
    """The official client; it tries nothing again unless told to."""
    return OpenAI(
        base_url=f"{url}/v1", api_key=key_of(user), **{"max_retries": 0, "timeout": 60, **other}
    )


def tokens(request: dict[str, Any]) -> int:
    """As the scripted server counts: a token for four characters."""
    return counts(Reply(), request)[0]


def within_the_window(scripted: ScriptedModel, said: Callable[[dict[str, Any]], Reply]) -> None:
    """From now on the model answers with `said`, and refuses a request that is longer than its window."""

    def answer(request: dict[str, Any]) -> Reply:
        asked = tokens(request)
        return overflow(asked, WINDOW) if asked > WINDOW else said(request)

    scripted.default = answer


def sizes(scripted: ScriptedModel) -> list[int]:
    return [tokens(request.json) for request in completions(scripted)]


def completions(scripted: ScriptedModel) -> list[Received]:
    return [request for request in scripted.requests if request.path.endswith("completions")]


def arguments_of(call: Any) -> Any:
    return json.loads(call.function.arguments)

"""Connect a program: its block, a token that is shown once, and when it was last used."""

import html
import json
import re
import shlex
import tomllib
from datetime import timedelta
from io import StringIO
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatcore.accounts.token_uses import store_uses
from chatcore.base.rest import token_uses
from chatcore.contrib.compat.connect.filling import build_connection
from chatcore.contrib.compat.connect.programs import PROGRAMS
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.openai_client import create_key
from tests.support.rendered_pages import signed_in

__all__ = ["signed_in"]

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/settings/programs/"
TOKEN = re.compile(r"chat_[0-9a-z]+")


@pytest.fixture(autouse=True)
def forget_uses(model: AiModel) -> None:
    token_uses.forget_uses()
    AiModel.objects.filter(pk=model.pk).update(
        context_window_size=65_536, input_price=3, output_price=15
    )


@pytest.fixture
def small(model: AiModel) -> AiModel:
    return AiModel.objects.create(
        provider=model.provider,
        name="small-model",
        context_window_size=65_536,
        input_price=1,
        output_price=5,
    )


def build_block(user: User, key: str) -> str:
    to = build_connection(user, address="http://127.0.0.1:8000/", token="chat_1", model=None)
    assert to
    return PROGRAMS[key].build_block(to)


def read_block(page: str) -> str:
    found = re.search(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL)
    assert found
    return html.unescape(found[1])


def test_codex(user: User) -> None:
    settings = tomllib.loads(build_block(user, "codex"))
    assert settings["model"] == "test-model"
    assert settings["model_context_window"] == 65_536
    provider = settings["model_providers"][settings["model_provider"]]
    assert provider["base_url"] == "http://127.0.0.1:8000/v1"
    assert provider["experimental_bearer_token"] == "chat_1"


def test_claude_code(user: User, small: AiModel) -> None:
    variables = json.loads(build_block(user, "claude-code"))["env"]
    assert variables["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8000"
    assert variables["ANTHROPIC_MODEL"] == "test-model"
    assert variables["ANTHROPIC_DEFAULT_HAIKU_MODEL"] == "small-model"
    assert variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "65536"


@pytest.mark.parametrize("key", ["opencode", "qwen-code", "pi"])
def test_programs_with_settings_in_json(user: User, small: AiModel, key: str) -> None:
    settings = json.dumps(json.loads(build_block(user, key)))
    for word in ("chat_1", "http://127.0.0.1:8000/v1", "test-model", "small-model", "65536"):
        assert word in settings


@pytest.mark.parametrize("key", ["cline", "continue", "aider", "llm"])
def test_other_programs(user: User, key: str) -> None:
    block = build_block(user, key)
    for word in ("chat_1", "http://127.0.0.1:8000/v1", "test-model"):
        assert word in block


def test_odd_names_are_quoted(user: User, model: AiModel) -> None:
    name = 'a "b" $(c) \\d'
    AiModel.objects.filter(pk=model.pk).update(name=name, context_window_size=None)
    assert tomllib.loads(build_block(user, "codex"))["model"] == name
    assert json.loads(build_block(user, "claude-code"))["env"]["ANTHROPIC_MODEL"] == name
    assert shlex.split(build_block(user, "cline"))[-1] == name


def test_a_name_of_two_providers_is_written_whole(user: User, model: AiModel) -> None:
    provider = model.provider
    provider.pk = None
    provider.name = "another"
    provider.save(force_insert=True)
    AiModel.objects.create(provider=provider, name=model.name)
    assert tomllib.loads(build_block(user, "codex"))["model"] == "scripted/test-model"


def test_the_page_makes_a_token_and_says_that_the_program_came(
    signed_in: Client, live: Live
) -> None:
    page = signed_in.get(PAGE).content.decode()
    assert "YOUR-TOKEN" in read_block(page)
    form = {"program": "codex", "model": "scripted/test-model", "make": "yes"}
    made = signed_in.post(f"{PAGE}block/", form).content.decode()
    token = tomllib.loads(read_block(made))["model_providers"]["chatcore"][
        "experimental_bearer_token"
    ]
    assert "Waiting for the program" in made
    kept = signed_in.post(f"{PAGE}block/", {"program": "codex", "token-codex": token})
    assert token in read_block(kept.content.decode()), "another model keeps the token"
    other = signed_in.post(f"{PAGE}block/", {"program": "pi", "token-codex": token})
    assert token not in other.content.decode()
    assert token not in signed_in.get(PAGE).content.decode(), "it is shown once"
    answer = httpx.get(f"{live.url}/v1/models", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    store_uses()
    address = re.search(r'hx-get="([^"]*)"', made)
    assert address
    assert "Connected" in signed_in.get(address[1]).content.decode()
    assert "used " in signed_in.get("/settings/").content.decode()


def test_wrong_choices_are_none(signed_in: Client) -> None:
    wrong = {"program": "vi", "model": "x" * 400, "token-codex": "<b>"}
    assert "codex" in signed_in.post(f"{PAGE}block/", wrong).content.decode()
    assert signed_in.get(f"{PAGE}nobody/").status_code == 404
    assert Client().get(PAGE).status_code == 302


def test_without_a_model(signed_in: Client) -> None:
    AiModel.objects.all().delete()
    assert "no model yet" in signed_in.get(PAGE).content.decode()
    form = {"program": "codex", "make": "yes"}
    assert "chat_" not in signed_in.post(f"{PAGE}block/", form).content.decode()


def test_a_use_is_stored_once_a_minute_and_never_by_the_request(
    user: User, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"Authorization": f"Bearer {create_key(user)}"}

    def read_use() -> Any:
        return httpx.get(f"{live.url}/api/v1/tokens", headers=headers).json()["results"][0][
            "last_used_at"
        ]

    assert read_use() is None
    store_uses()
    first = read_use()
    assert first
    store_uses()
    assert read_use() == first, "not again within a minute"
    with CaptureQueriesContext(connection) as queries:
        store_uses()
    assert not queries.captured_queries
    later = timezone.now() + timedelta(minutes=2)
    monkeypatch.setattr("chatcore.base.rest.token_uses.timezone.now", lambda: later)
    store_uses()
    monkeypatch.undo()
    assert read_use() > first


def test_a_use_of_a_revoked_token_is_dropped() -> None:
    token_uses.note_use("0" * 128)
    store_uses()


def test_the_command_prints_the_same(user: User, signed_in: Client) -> None:
    out, told = StringIO(), StringIO()
    call_command("connect", "codex", user="alice", url="http://testserver", stdout=out, stderr=told)
    form = {"program": "codex", "make": "yes"}
    made = read_block(signed_in.post(f"{PAGE}block/", form).content.decode())
    assert TOKEN.sub("X", out.getvalue()) == TOKEN.sub("X", made)
    assert "~/.codex/config.toml" in told.getvalue()
    with pytest.raises(CommandError, match="no model nothing"):
        call_command("connect", "pi", user="alice", model="nothing")
    with pytest.raises(CommandError, match="no active user bob"):
        call_command("connect", "pi", user="bob")


def test_pi_is_started_with_the_model_because_a_provider_alone_is_not_enough(
    user: User, signed_in: Client
) -> None:
    out, told = StringIO(), StringIO()
    call_command("connect", "pi", user="alice", url="http://testserver", stdout=out, stderr=told)
    assert "start: pi --model chatcore/test-model" in told.getvalue()
    page = signed_in.post(f"{PAGE}block/", {"program": "pi"}).content.decode()
    assert "<code>pi --model chatcore/test-model</code>" in page

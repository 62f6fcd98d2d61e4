"""A server of language models of one's own: found or named by its address, its models ticked."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from chatcore.models import Session
from chatcore.providers import client as provider_client
from chatcore.providers import model_lists
from chatcore.providers.model_lists import LocalServer
from chatcore.turns import control
from models_registry.models import AiModel, Provider
from tests.support.sample_site import Site, page, sites
from tests.support.scripted_model import ScriptedModel

__all__ = ["sites"]

pytestmark = pytest.mark.django_db(transaction=True)

RIGHTS = ("connect_provider", "add_provider", "add_aimodel", "change_aimodel")


@pytest.fixture
def operator(client: Client, user: User) -> Client:
    user.user_permissions.add(*Permission.objects.filter(codename__in=RIGHTS))
    client.force_login(user)
    return client


@pytest.fixture
def run_locally(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let Ollama's port be that of a server of the test."""

    def run(url: str) -> None:
        port = urlsplit(url).port or 0
        servers = (LocalServer(name="ollama", title="Ollama", port=port),)
        monkeypatch.setattr(model_lists, "LOCAL_SERVERS", servers)

    return run


def connect(client: Client, address: str, **fields: str) -> str:
    return client.post(reverse("connect_server"), {"address": address, **fields}).content.decode()


def test_an_address_shows_its_models_and_those_that_are_ticked_can_be_used(
    operator: Client, scripted: ScriptedModel
) -> None:
    scripted.models = ["text-embedder", "my-chat-7b", "gpt-4o"]
    text = connect(operator, scripted.base_url, key="k-1")
    provider = Provider.objects.get(base_url=scripted.base_url)
    assert provider.reveal_api_key() == "k-1"
    assert "k-1" not in text
    positions = [
        text.index(f'value="{name}"') for name in ("gpt-4o", "my-chat-7b", "text-embedder")
    ]
    assert positions == sorted(positions), "those that are known stand first, others last"
    assert "8.19k" in text
    answer = operator.post(
        reverse("add_models", args=[provider.pk]), {"model": ["my-chat-7b", "not-listed"]}
    )
    assert "1 model added." in answer.content.decode()
    model = AiModel.objects.filter_usable().get(provider=provider)
    assert (model.name, model.context_window_size) == ("my-chat-7b", 8192)
    assert model.values_source.startswith("the list of ")


def test_what_is_added_is_offered_as_the_default(
    operator: Client, model: AiModel, scripted: ScriptedModel
) -> None:
    connect(operator, scripted.base_url.replace("127.0.0.1", "localhost"))
    provider = Provider.objects.exclude(pk=model.provider_id).get(name__startswith="localhost")
    answer = operator.post(reverse("add_models", args=[provider.pk]), {"model": ["test-model"]})
    assert "Use test-model for new chats" in answer.content.decode()
    operator.post(reverse("set_default_model"), {"model": f"{provider.name}/test-model"})
    assert AiModel.objects.find_default() == provider.models.get()


@pytest.mark.parametrize(
    "address", ["", "ftp://host", "http://me:secret@host", "http://[::1", "a b"]
)
def test_what_is_no_address_is_said_beside_the_field(operator: Client, address: str) -> None:
    count = Provider.objects.count()
    text = connect(operator, address)
    assert 'id="address-error"' in text
    assert Provider.objects.count() == count


def test_an_address_without_path_and_scheme_is_that_of_the_protocol(operator: Client) -> None:
    text = connect(operator, "127.0.0.1:9")
    assert Provider.objects.get(name="127-0-0-1-9").base_url == "http://127.0.0.1:9/v1"
    assert "field-error" in text  # nobody answers there, and it says so
    connect(operator, "127.0.0.1:9")
    assert Provider.objects.filter(name="127-0-0-1-9-2").exists()


def test_a_server_of_another_protocol_is_connected_by_its_own_address(
    operator: Client, scripted: ScriptedModel
) -> None:
    scripted.models = ["claude-of-mine"]
    host = urlsplit(scripted.base_url).netloc
    text = connect(operator, host, protocol="anthropic")
    provider = Provider.objects.get(base_url=f"http://{host}")
    assert provider.protocol == "anthropic"
    assert 'value="claude-of-mine"' in text
    page = operator.get("/settings/").content.decode()
    assert '<option value="openai" selected>' in page
    assert '<option value="anthropic">' in page
    connect(operator, host, protocol="gopher")  # is refused
    assert Provider.objects.filter(base_url=f"http://{host}").count() == 1


def test_a_server_on_this_machine_is_found_and_connected_with_its_models(
    operator: Client, scripted: ScriptedModel, run_locally: Callable[[str], None]
) -> None:
    scripted.models = ["llama3", "qwen3"]
    run_locally(scripted.base_url)
    text = operator.get(reverse("find_servers")).content.decode()
    assert "Ollama" in text
    assert "runs on this computer, with 2 models" in text
    Provider.objects.filter(name="ollama").delete()
    answer = operator.post(reverse("connect_local_server", args=["ollama"]), {"model": "qwen3"})
    assert answer["HX-Redirect"] == reverse("new_chat")  # there was no model before
    assert [str(model) for model in AiModel.objects.filter_usable()] == ["ollama/qwen3"]
    assert "Ollama" not in operator.get(reverse("find_servers")).content.decode()
    assert Provider.objects.get(name="ollama").options == {}


def test_a_server_is_found_although_its_sdk_is_slow_to_import(
    scripted: ScriptedModel, run_locally: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def import_slowly(name: str) -> ModuleType:
        await asyncio.sleep(seconds.pop())
        return import_module(name)

    seconds = [0, 1.1 * model_lists.LOCAL_SECONDS]  # the last one first
    run_locally(scripted.base_url)
    monkeypatch.setattr(provider_client, "load_sdk", import_slowly)
    assert [server.name for server in model_lists.find_local_servers()] == ["ollama"]


def test_a_llama_cpp_on_this_machine_is_asked_how_far_it_has_read(
    operator: Client, user: User, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    (server,) = (known for known in model_lists.LOCAL_SERVERS if known.name == "llama-cpp")
    port = urlsplit(scripted.base_url).port or 0
    monkeypatch.setattr(model_lists, "LOCAL_SERVERS", (replace(server, port=port),))
    operator.post(reverse("connect_local_server", args=["llama-cpp"]), {"model": "test-model"})
    session = Session.objects.create(owner=user, model=AiModel.objects.filter_usable().get())
    control.wait_for_turn(control.start_turn(session, content="Hello?").pk, 10)
    assert scripted.requests[-1].json["return_progress"] is True


@pytest.mark.parametrize("body", ["<p>Hello</p>", '{"data": 5}', '{"data": [1, {}]}', "{", ""])
def test_another_program_on_such_a_port_is_no_server(
    operator: Client,
    run_locally: Callable[[str], None],
    sites: Callable[[], Site],
    body: str,
) -> None:
    site = sites()
    site.pages["/v1/models"] = page(body, "application/json")
    run_locally(site.url)
    assert operator.get(reverse("find_servers")).content.strip() == b""


def test_who_may_only_test_is_offered_nothing_and_may_add_nothing(
    client: Client, user: User, model: AiModel
) -> None:
    user.user_permissions.add(Permission.objects.get(codename="connect_provider"))
    client.force_login(user)
    AiModel.objects.all().delete()
    text = client.post(reverse("try_provider", args=[model.provider_id])).content.decode()
    assert "checkbox" not in text
    requests: list[tuple[Any, str]] = [
        (client.post, reverse("add_models", args=[model.provider_id])),
        (client.post, reverse("connect_server")),
        (client.post, reverse("connect_local_server", args=["ollama"])),
        (client.get, reverse("find_servers")),
    ]
    assert {send(address).status_code for send, address in requests} == {403}

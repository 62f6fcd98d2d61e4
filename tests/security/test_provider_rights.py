"""Who may change providers does not get their keys, nor any variable of the server."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from models_registry.models import AiModel, Provider
from tests.support.admin_forms import read_form

pytestmark = pytest.mark.django_db
KEY = "sk-CANARY-5512"
ELSEWHERE = "http://127.0.0.1:9/attacker"


@pytest.fixture
def provider(model: AiModel) -> Provider:
    model.provider.api_key = KEY
    model.provider.save()
    return model.provider


def sign_in(user: User, *rights: str) -> Client:
    user.is_staff = True
    user.save()
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def editor(user: User) -> Client:
    """Somebody who may change providers, but not where they connect to."""
    return sign_in(user, "view_provider", "change_provider")


@pytest.fixture
def connector(user: User) -> Client:
    """Somebody who may also change addresses and keys."""
    return sign_in(user, "view_provider", "change_provider", "connect_provider")


def get_address(provider: Provider) -> str:
    return reverse("admin:models_registry_provider_change", args=[provider.pk])


def read_fields(client: Client, provider: Provider) -> dict[str, Any]:
    page = client.get(get_address(provider)).content.decode()
    assert KEY not in page
    return read_form(page, "provider_form")


def post_change(client: Client, provider: Provider, **changes: str) -> dict[str, list[str]]:
    """Post the form with these changes; return its errors, none if it was saved."""
    response = client.post(get_address(provider), read_fields(client, provider) | changes)
    if response.status_code == 302:
        return {}
    return {name: [*errors] for name, errors in response.context["adminform"].errors.items()}


def test_the_right_to_change_a_provider_is_not_the_right_to_connect_it(
    editor: Client, provider: Provider
) -> None:
    changes = {
        "base_url": ELSEWHERE,
        "api_key": "sk-mine",
        "api_key_env": "PATH",
        "clear_api_key": "on",
        "protocol": "anthropic",
        "options": '{"headers": {}}',
    }
    assert post_change(editor, provider, timeout_seconds="7", **changes) == {}
    after = Provider.objects.get(pk=provider.pk)
    assert after.timeout_seconds == 7
    assert (after.base_url, after.reveal_api_key()) == (provider.base_url, KEY)
    assert (after.api_key_env, after.protocol, after.options) == ("", "openai", {})
    for act in ("key", "test"):
        address = f"/settings/providers/{provider.pk}/{act}/"
        assert editor.post(address, {"key": "sk-mine"}).status_code == 403
    assert editor.get(reverse("admin:models_registry_provider_add")).status_code == 403


@pytest.mark.parametrize(
    "change",
    [
        {"base_url": ELSEWHERE},
        {"protocol": "anthropic"},
        {"options": '{"headers": {"X-Forward-To": "evil.example"}}'},
    ],
)
def test_another_address_does_not_get_the_stored_key(
    connector: Client, provider: Provider, change: dict[str, str]
) -> None:
    errors = post_change(connector, provider, **change)
    assert list(errors) == ["api_key"]
    assert "Enter the key again" in errors["api_key"][0]
    before = Provider.objects.get(pk=provider.pk)
    assert (before.base_url, before.reveal_api_key()) == (provider.base_url, KEY)
    assert post_change(connector, provider, **change, api_key="sk-for-it") == {}
    assert Provider.objects.get(pk=provider.pk).reveal_api_key() == "sk-for-it"


def test_another_address_without_a_key_needs_none(connector: Client, provider: Provider) -> None:
    assert post_change(connector, provider, base_url=ELSEWHERE, clear_api_key="on") == {}
    after = Provider.objects.get(pk=provider.pk)
    assert (after.base_url, after.reveal_api_key()) == (ELSEWHERE, "")
    assert post_change(connector, after, base_url=f"{ELSEWHERE}/v1") == {}


def test_a_form_that_says_the_address_was_always_there_is_refused(
    connector: Client, provider: Provider
) -> None:
    errors = post_change(connector, provider, base_url=ELSEWHERE, **{"initial-base_url": ELSEWHERE})
    assert list(errors) == ["api_key"]


@pytest.mark.parametrize(
    "name", ["PATH", "CHATCORE_SECRET_KEY", "CHATCORE_DATA_DIR", "chatcore_secret_key", "HOME"]
)
def test_no_variable_of_the_server_becomes_a_key(
    connector: Client, provider: Provider, settings: Any, name: str
) -> None:
    listed = [name] if name.upper().startswith("CHATCORE_") else []
    settings.CHATCORE = {**settings.CHATCORE, "PROVIDER_KEY_VARIABLES": listed}
    errors = post_change(connector, provider, api_key_env=name, clear_api_key="on")
    assert list(errors) == ["api_key_env"]
    assert Provider.objects.get(pk=provider.pk).api_key_env == ""


def test_a_variable_of_our_own_is_never_read(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHATCORE_SECRET_KEY", "canary")
    provider.api_key, provider.api_key_env = "", "CHATCORE_SECRET_KEY"
    assert (provider.reveal_api_key(), provider.has_key()) == ("", False)


def test_a_variable_of_the_catalog_goes_to_its_own_address_only(
    connector: Client, provider: Provider
) -> None:
    errors = post_change(
        connector, provider, api_key_env="MISTRAL_API_KEY", base_url=ELSEWHERE, clear_api_key="on"
    )
    assert list(errors) == ["api_key_env"]
    changes = {
        "api_key_env": "MISTRAL_API_KEY",
        "base_url": "https://api.mistral.ai/v1",
        "clear_api_key": "on",
    }
    assert post_change(connector, provider, **changes) == {}
    mistral = Provider.objects.get(pk=provider.pk)
    assert list(post_change(connector, mistral, base_url=ELSEWHERE)) == ["api_key_env"]


def test_a_key_that_is_cleared_lets_no_variable_out_to_the_address_it_leaves(
    connector: Client, provider: Provider
) -> None:
    Provider.objects.filter(pk=provider.pk).update(api_key_env="OPENAI_API_KEY", base_url=ELSEWHERE)
    assert list(post_change(connector, provider, clear_api_key="on")) == ["api_key_env"]
    assert Provider.objects.get(pk=provider.pk).reveal_api_key() == KEY


def test_a_variable_that_the_operator_lists_goes_to_any_address(
    connector: Client, provider: Provider, settings: Any
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "PROVIDER_KEY_VARIABLES": ["TEAM_KEY"]}
    changes = {"api_key_env": "TEAM_KEY", "base_url": ELSEWHERE, "clear_api_key": "on"}
    assert post_change(connector, provider, **changes) == {}
    assert Provider.objects.get(pk=provider.pk).api_key_env == "TEAM_KEY"


def test_a_client_sends_the_machines_own_credentials_to_no_named_address(
    connector: Client, provider: Provider
) -> None:
    changes = {"options": '{"client": "vertex"}', "clear_api_key": "on"}
    assert list(post_change(connector, provider, base_url=ELSEWHERE, **changes)) == ["api_key"]
    assert post_change(connector, provider, base_url="", **changes) == {}


def test_options_that_are_no_object_are_refused(connector: Client, provider: Provider) -> None:
    errors = post_change(connector, provider, options="[1]", api_key="sk-x")
    assert list(errors) == ["options"]


def test_the_log_names_the_address_and_no_key(connector: Client, provider: Provider) -> None:
    assert post_change(connector, provider, base_url=ELSEWHERE, api_key="sk-secret-1") == {}
    connector.post(f"/settings/providers/{provider.pk}/key/", {"key": "sk-secret-2"})
    connector.post(f"/settings/providers/{provider.pk}/test/")
    texts = [entry.get_change_message() for entry in LogEntry.objects.order_by("id")]
    for act in ("Set the address or key", "Entered a key", "Tested the connection"):
        assert f"{act}: openai at {ELSEWHERE}." in texts
    assert "sk-secret" not in " ".join(texts)

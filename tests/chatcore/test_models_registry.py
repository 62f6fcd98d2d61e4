"""The registry's rows: found by name, with one default, and edited without showing a key."""

import html
import json
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from chatcore.contrib.local_model import register
from chatcore.providers.dialects import Dialect
from models_registry.models import AiModel, Provider
from models_registry.provider_options import DialectOptions, ProviderOptions

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
KEY = "sk-very-secret-0123456789"


@pytest.fixture
def acme() -> Provider:
    return Provider.objects.create(name="acme", protocol="openai", base_url="http://127.0.0.1:9/v1")


@pytest.fixture
def operator() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def form_of(provider: Provider, **changes: Any) -> dict[str, Any]:
    inline = {"models-TOTAL_FORMS": "0", "models-INITIAL_FORMS": "0"}
    row = {
        "name": provider.name,
        "protocol": provider.protocol,
        "base_url": provider.base_url,
        "options": "{}",
        "timeout_seconds": "120",
    }
    return {**row, **inline, "is_active": "on" if provider.is_active else "", **changes}


def change(client: Client, provider: Provider, **changes: Any) -> Any:
    response = client.post(
        reverse("admin:models_registry_provider_change", args=[provider.pk]),
        form_of(provider, **changes),
    )
    provider.refresh_from_db()
    return response


def test_a_model_is_found_by_its_name_and_by_its_providers(acme: Provider) -> None:
    other = Provider.objects.create(name="other", protocol="openai")
    first, second = (
        AiModel.objects.create(provider=provider, name="shared/model") for provider in (acme, other)
    )
    assert AiModel.objects.find_by_name("shared/model") == first
    assert AiModel.objects.find_by_name("other/shared/model") == second
    assert AiModel.objects.find_by_name("acme/unknown") is None


def test_what_is_switched_off_is_not_found(acme: Provider) -> None:
    AiModel.objects.create(provider=acme, name="off", is_active=False)
    AiModel.objects.create(
        provider=Provider.objects.create(name="dark", protocol="openai", is_active=False),
        name="unlit",
    )
    assert AiModel.objects.find_by_name("off") is None
    assert AiModel.objects.find_by_name("unlit") is None


def test_there_is_one_default_and_making_another_moves_it(acme: Provider) -> None:
    first, second = (AiModel.objects.create(provider=acme, name=name) for name in ("one", "two"))
    first.make_default()
    second.make_default()
    assert list(AiModel.objects.filter(is_default=True)) == [second]
    assert AiModel.objects.find_default() == second
    with pytest.raises(IntegrityError), transaction.atomic():
        AiModel.objects.filter(pk=first.pk).update(is_default=True)


def test_a_window_of_zero_is_refused_and_an_unknown_one_is_not(acme: Provider) -> None:
    AiModel(provider=acme, name="unknown").full_clean()
    with pytest.raises(ValidationError, match="at least one token"):
        AiModel(provider=acme, name="zero", context_window_size=0).full_clean()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://127.0.0.1:11434/v1",
        "http://ollama:11434/v1",
        "https://api.example.com",
        "http://[::1]:80/v1/",
    ],
)
def test_any_http_address_can_be_a_base_url(url: str) -> None:
    Provider(name="p", protocol="openai", base_url=url).full_clean()


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com",
        "example.com",
        "http://",
        "http://user:key@example.com",
        "https://a.b/v1?key=1",
        "http://a b",
    ],
)
def test_what_is_no_address_or_carries_a_secret_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="base_url"):
        Provider(name="p", protocol="openai", base_url=url).full_clean()


def test_a_key_typed_by_an_operator_is_stored_and_never_shown_again(
    acme: Provider, operator: Client
) -> None:
    assert change(operator, acme, api_key=KEY).status_code == 302
    assert acme.reveal_api_key() == KEY
    for page in ("changelist", "change"):
        html = operator.get(
            reverse(
                f"admin:models_registry_provider_{page}", args=[acme.pk] if page == "change" else []
            )
        ).content.decode()
        assert KEY not in html
        assert acme.encrypted_api_key not in html
        assert "stored" in html
    assert KEY not in "".join(LogEntry.objects.values_list("change_message", flat=True))


def test_a_form_that_failed_does_not_send_the_key_back(acme: Provider, operator: Client) -> None:
    response = change(operator, acme, api_key=KEY, base_url="nonsense")
    assert response.status_code == 200
    assert KEY not in response.content.decode()
    assert acme.reveal_api_key() == ""


def test_leaving_the_field_empty_keeps_the_key(acme: Provider, operator: Client) -> None:
    change(operator, acme, api_key=KEY)
    change(operator, acme, api_key="", timeout_seconds="30")
    assert (acme.reveal_api_key(), acme.timeout_seconds) == (KEY, 30)


def test_the_box_clears_the_key_and_contradicts_a_new_one(acme: Provider, operator: Client) -> None:
    change(operator, acme, api_key=KEY)
    assert (
        "Either enter" in change(operator, acme, api_key="new", clear_api_key="on").content.decode()
    )
    assert acme.reveal_api_key() == KEY
    change(operator, acme, clear_api_key="on")
    assert acme.reveal_api_key() == ""


def test_a_provider_of_the_catalog_is_switched_on_by_its_first_key(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    call_command("sync_models", verbosity=0)
    mistral = Provider.objects.get(name="mistral")
    change(
        operator,
        mistral,
        api_key=KEY,
        family="mistral",
        api_key_env="MISTRAL_API_KEY",
        is_active="",
    )
    assert mistral.is_active


def test_a_new_model_gets_the_window_that_the_catalog_knows(
    acme: Provider, operator: Client
) -> None:
    add = reverse("admin:models_registry_aimodel_add")
    operator.post(add, {"provider": acme.pk, "name": "gpt-4o-2024-08-06", "is_active": "on"})
    operator.post(add, {"provider": acme.pk, "name": "own-model", "is_active": "on"})
    assert dict(acme.models.values_list("name", "context_window_size")) == {
        "gpt-4o-2024-08-06": 128_000,
        "own-model": None,
    }


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("amazon.nova-pro-v1:0", 300_000),
        ("grok-4.3", 1_000_000),
        ("kimi-k2", 262_144),
        ("qwen3.7-max", 1_000_000),
        ("gpt-5", 400_000),
        ("own-model", None),
    ],
)
def test_a_row_of_a_known_name_has_its_window_as_soon_as_a_script_saves_it(
    acme: Provider, name: str, window: int | None
) -> None:
    row = AiModel.objects.create(provider=acme, name=name)
    row.refresh_from_db()
    assert row.context_window_size == window
    row.context_window_size = None  # an operator who knows better
    row.save()
    row.refresh_from_db()
    assert row.context_window_size is None
    smaller, _ = acme.models.update_or_create(
        name=f"{name}@2026", defaults={"context_window_size": 5_000}
    )
    assert smaller.context_window_size == 5_000


@pytest.mark.parametrize(
    ("protocol", "name", "kind"),
    [
        ("openai", "gpt-4.1", "none"),
        ("openai", "gpt-5-chat-latest", "none"),
        ("openai", "gemini-2.5-flash-lite", "none"),
        ("openai", "o3-mini-2025-01-31", "effort"),
        ("openai", "openai/gpt-5.2", "effort"),
        ("openai", "google/gemini-3-pro-preview", "effort"),
        ("openai", "o1-mini", "adaptive"),
        ("openai", "deepseek/deepseek-r1:free", "adaptive"),
        ("anthropic", "claude-sonnet-4-20250514", "budget"),
        ("anthropic", "us.anthropic.claude-haiku-4-5-v1:0", "budget"),
        ("anthropic", "claude-sonnet-4-6", "adaptive"),
        ("anthropic", "claude-3-5-haiku-20241022", "none"),
        ("openai", "own-model", "none"),
    ],
)
def test_the_registry_knows_how_a_model_reasons(
    acme: Provider, protocol: str, name: str, kind: str
) -> None:
    acme.protocol = protocol
    assert AiModel(provider=acme, name=name).reasoning.kind == kind


def test_an_operator_picks_the_default_from_the_list(acme: Provider, operator: Client) -> None:
    one, two = (AiModel.objects.create(provider=acme, name=name) for name in ("one", "two"))
    url = reverse("admin:models_registry_aimodel_changelist")
    operator.post(url, {"action": "make_default", "_selected_action": [one.pk, two.pk]})
    assert not AiModel.objects.filter(is_default=True).exists()
    operator.post(url, {"action": "make_default", "_selected_action": [two.pk]})
    assert AiModel.objects.find_default() == two


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ('{"max_token_field": "max_tokens"}', "max_token_field is no option; max_tokens_field is."),
        ('{"colour": 1}', "colour is no option."),
        ('{"dialect": {"reasonin": "all"}}', "dialect.reasonin is no option; reasoning is."),
        ('{"dialect": {"reasoning": "some"}}', "dialect.reasoning is own or all or none."),
        ('{"summary_seconds": true}', "summary_seconds is a number."),
        ('{"headers": {"x-team": 5}}', "headers is an object."),
        ('{"params": "store"}', "params is a list of texts."),
        ('{"compaction_places": 0}', "compaction_places is a whole number from 1 on"),
        ("[1]", "An object, as"),
    ],
)
def test_an_option_that_is_unknown_misspelt_or_of_another_type_is_named(
    operator: Client, acme: Provider, options: str, words: str
) -> None:
    page = html.unescape(change(operator, acme, options=options).content.decode())
    assert words in page
    assert acme.options == {}


def test_every_option_that_is_taken_is_told_of_and_kept(operator: Client, acme: Provider) -> None:
    options = {**register.PROVIDER_OPTIONS, "dialect": {"max_images": 5}, "compaction_places": 2}
    assert change(operator, acme, options=json.dumps(options)).status_code == 302
    assert acme.options == options
    docs = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    assert [name for name in get_type_hints(ProviderOptions) if f"`{name}" not in docs] == []
    assert set(get_type_hints(DialectOptions)) == {field.name for field in fields(Dialect)}

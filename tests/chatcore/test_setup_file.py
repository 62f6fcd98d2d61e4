"""An installation that is written down: by the file, by commands, over REST, and in the admin."""

import io
import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from chatcore.contrib.audit.models import AuditEntry
from chatcore.contrib.group_rights.models import GroupRights
from chatcore.models import Session, SetupEntry
from chatcore.setup.documents import OPERATOR, apply_document, apply_setup_file
from chatcore.setup.sections import SetupRefused
from compaction.models import CompactionPolicy
from compaction.policies import UnknownPolicy, load_policy
from models_registry import catalog
from models_registry.models import AiModel, Provider
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db
SETUP = "/api/v1/setup"
FILE = """
default_model = "vllm/Qwen/Qwen3-32B"

[providers.vllm]
base_url = "http://vllm.internal:8000/v1"
api_key_env = "VLLM_KEY"
timeout_seconds = 300

[models."vllm/Qwen/Qwen3-32B"]
context_window_size = 131_072
supports_tools = true
input_price = 0.5
policy = "long"

[policies.long]
base = "chatcore"
trigger.threshold = 0.7

[groups.staff]
models = ["vllm/*"]
policies = ["long", "oneclaw"]
"""


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"providers": {"p": {"timeout_seconds": 10**400}}}, "providers.p.timeout_seconds"),
        ({"providers": {"p": {"timeout_seconds": 1e308}}}, "providers.p.timeout_seconds"),
        ({"providers": {"p": {"options": {"x": date(2026, 1, 1)}}}}, "providers.p.options"),
        ({"providers": {"p": {"options": {"x": math.nan}}}}, "providers.p.options"),
        ({"providers": {"p": {"base_url": "http://[::1"}}}, "providers.p.base_url"),
        ({"providers": {"p": {"base_url": "http://host:99999/"}}}, "providers.p.base_url"),
        ({"providers": {"p": {"api_key_env": "CHATCORE_SECRET_KEY"}}}, "providers.p.api_key_env"),
        ({"groups": {"g" * 200: {"models": []}}}, f"groups.{'g' * 200}"),
    ],
)
def test_a_value_that_nothing_can_hold_is_refused_by_its_place(document: Any, place: str) -> None:
    with pytest.raises(SetupRefused) as refusal:
        apply_document(document, OPERATOR)
    assert refusal.value.place == place
    assert not Provider.objects.exists()


@pytest.fixture
def setup_file(settings: LazySettings, tmp_path: Path) -> Path:
    path = tmp_path / "setup.toml"
    settings.CHATCORE = {**settings.CHATCORE, "SETUP_FILE": str(path)}
    path.write_text(FILE)
    return path


@pytest.fixture
def operator(client: Client) -> Client:
    user = User.objects.create_superuser("operator")
    client.force_login(user)
    return client


def test_a_file_sets_an_installation_and_a_second_start_changes_nothing(
    setup_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_KEY", "sk-secret")
    assert set(apply_setup_file()) == {
        "providers.vllm",
        "models.vllm/Qwen/Qwen3-32B",
        "policies.long",
        "groups.staff",
        "default_model",
    }
    model = AiModel.objects.select_related("provider").get(name="Qwen/Qwen3-32B")
    assert (model.context_window_size, model.supports_tools, model.is_default) == (
        131_072,
        True,
        True,
    )
    assert str(model.input_price) == "0.500000"
    assert model.provider.reveal_api_key() == "sk-secret"
    assert load_policy("long").trigger.threshold == 0.7
    rights = GroupRights.objects.get(group__name="staff")
    assert (rights.limits_models, rights.model_names) == (True, ["vllm/*"])
    assert not rights.limits_tools
    assert apply_setup_file() == []


def test_the_file_wins_over_edits_and_learned_facts(setup_file: Path) -> None:
    apply_setup_file()
    provider = Provider.objects.get(name="vllm")
    provider.api_key = "sk-typed-by-somebody"  # it would be used in place of the variable
    provider.base_url = "http://elsewhere.example/v1"
    provider.save()
    AiModel.objects.filter(provider=provider).update(
        context_window_size=8192, supports_tools=False, is_active=False
    )
    assert apply_setup_file()
    provider.refresh_from_db()
    model = provider.models.get()
    assert provider.base_url == "http://vllm.internal:8000/v1"
    assert not provider.encrypted_api_key
    assert (model.context_window_size, model.supports_tools, model.is_active) == (
        131_072,
        True,
        True,
    )


def test_a_model_of_the_catalog_keeps_what_the_file_says_of_it(setup_file: Path) -> None:
    catalog.sync()
    setup_file.write_text('[models."openai/gpt-4o"]\ncontext_window_size = 64000\n')
    apply_setup_file()
    catalog.sync()
    assert AiModel.objects.get(name="gpt-4o").context_window_size == 64_000
    setup_file.write_text('[models."openai/gpt-4o"]\nis_active = true\n')
    apply_setup_file()  # what the file names no more, the catalog says again
    assert AiModel.objects.get(name="gpt-4o").context_window_size == 128_000


def test_what_is_removed_from_the_file_goes_out_of_use(setup_file: Path) -> None:
    apply_setup_file()
    setup_file.write_text('[providers.vllm]\nbase_url = "http://vllm.internal:8000/v1"\n')
    apply_setup_file()
    provider = Provider.objects.get(name="vllm")
    assert (provider.is_active, provider.timeout_seconds, provider.api_key_env) == (True, 120, "")
    assert not provider.models.get().is_active
    assert not CompactionPolicy.objects.get().is_active
    with pytest.raises(UnknownPolicy):
        load_policy("long")
    assert not GroupRights.objects.get().limits_models
    setup_file.write_text("")
    apply_setup_file()
    assert not Provider.objects.get(name="vllm").is_active
    assert not SetupEntry.objects.exists()


def test_without_the_setting_what_the_file_has_set_stays_and_is_free(
    setup_file: Path, settings: LazySettings
) -> None:
    apply_setup_file()
    settings.CHATCORE = {**settings.CHATCORE, "SETUP_FILE": ""}
    apply_setup_file()
    assert Provider.objects.get(name="vllm").is_active
    assert not SetupEntry.objects.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[providers.x]\napi_key = 'sk-1234567'", "No key stands in this file"),
        ("[providers.x]\nbase_url = 'ftp://x'", "providers.x.base_url: An http or https"),
        ("[providers.'My Server']\n", "providers.My Server: "),
        ("[providers.x]\nadress = 'http://x'", "providers.x.adress: There is no such value"),
        ("[models.x]\n", "A model is named provider/model."),
        ("[models.'x/y']\n", "There is no provider called x."),
        (
            "[providers.x]\n[models.'x/y']\ncontext_window_size = true",
            "models.x/y.context_window_size: Must be a whole number.",
        ),
        (
            "[providers.x]\n[models.'x/y']\ncontext_window_size = 0",
            "A context window has at least one token",
        ),
        ("[policies.p]\nbase = 'nope'", "There is no preset named 'nope'"),
        ("[policies.p]\ntrigger.treshold = 0.7", "treshold"),
        ("[groups.g]\nmodels = 'all'", "groups.g.models: Must be a list of names."),
        ("[servers.x]\n", "There is no such section; there are providers, models"),
        ("default_model = 'x/y'", "There is no usable model called x/y."),
        ("[providers", "It is no TOML"),
    ],
)
def test_a_file_with_a_mistake_changes_nothing_and_says_where(
    setup_file: Path, text: str, words: str
) -> None:
    setup_file.write_text(f"[providers.first]\n{text}" if not text.startswith("d") else text)
    with pytest.raises(SetupRefused) as refusal:
        apply_setup_file()
    assert words in str(refusal.value)
    assert str(setup_file) in str(refusal.value)
    assert "sk-1234567" not in str(refusal.value)
    assert not Provider.objects.filter(name="first").exists()


def test_the_admin_shows_what_the_file_sets_and_changes_none_of_it(
    setup_file: Path, operator: Client
) -> None:
    apply_setup_file()
    rows: list[tuple[str, Any]] = [
        ("models_registry_provider", Provider.objects.get(name="vllm")),
        ("models_registry_aimodel", AiModel.objects.get(name="Qwen/Qwen3-32B")),
        ("compaction_compactionpolicy", CompactionPolicy.objects.get()),
        ("group_rights_grouprights", GroupRights.objects.get()),
    ]
    for page, row in rows:
        address = reverse(f"admin:{page}_change", args=[row.pk])
        answer = operator.get(address)
        assert "CHATCORE_SETUP_FILE sets this" in answer.content.decode(), page
        assert operator.post(address, {"name": "other"}).status_code == 403, page
        assert (
            operator.post(address.replace("change", "delete"), {"post": "yes"}).status_code == 403
        )
    free = Provider.objects.create(name="by-hand", protocol="openai")
    answer = operator.get(reverse("admin:models_registry_provider_change", args=[free.pk]))
    assert "CHATCORE_SETUP_FILE" not in answer.content.decode()

    other = AiModel.objects.create(provider=free, name="other")
    operator.post(
        reverse("admin:models_registry_aimodel_changelist"),
        {"action": "make_default", "_selected_action": [other.pk]},
    )
    assert AiModel.objects.get(is_default=True).name == "Qwen/Qwen3-32B"

    settings_page = operator.get(reverse("settings")).content.decode()
    assert "set by the setup file" in settings_page
    key_address = reverse("set_key", args=[rows[0][1].pk])
    assert operator.post(key_address, {"key": "sk-mine"}).status_code == 409
    assert not Provider.objects.get(name="vllm").encrypted_api_key


def test_staff_set_an_installation_over_rest(api: APIClient, user: User) -> None:
    body = {
        "providers": {"vllm": {"base_url": "http://vllm.internal:8000/v1", "api_key": "sk-secret"}},
        "models": {"vllm/qwen2.5:7b": {"context_window_size": 32_768}},
        "policies": {"long": {"base": "chatcore", "trigger": {"threshold": 0.7}}},
        "groups": {"staff": {"models": ["vllm/*"], "tools": None}},
        "default_model": "vllm/qwen2.5:7b",
    }
    assert api.get(SETUP).json() == {"from_file": []}
    assert api.post(f"{SETUP}/providers/vllm/test").status_code == 404
    assert api.patch(SETUP, body).status_code == 403
    User.objects.filter(pk=user.pk).update(is_superuser=True)
    answer = api.patch(SETUP, body)
    assert answer.status_code == 200, answer.json()
    assert answer.json() == api.get(SETUP).json()
    assert answer.json()["providers"]["vllm"] == {
        "protocol": "openai",
        "base_url": "http://vllm.internal:8000/v1",
    }
    assert "sk-secret" not in answer.content.decode()
    assert Provider.objects.get(name="vllm").reveal_api_key() == "sk-secret"
    assert answer.json()["default_model"] == "vllm/qwen2.5:7b"
    assert AuditEntry.objects.filter(act="setup.changed").count() == 5
    repeated = {name: value for name, value in body.items() if name != "providers"}
    assert api.patch(SETUP, repeated).status_code == 200
    assert AuditEntry.objects.filter(act="setup.changed").count() == 5


def test_rest_names_what_it_refuses_and_sends_no_key_elsewhere(
    api: APIClient, user: User, setup_file: Path
) -> None:
    connect = Permission.objects.filter(
        codename__in=["connect_provider", "add_provider", "change_provider"]
    )
    user.user_permissions.set(connect)
    provider = {"base_url": "http://vllm.internal:8000/v1", "api_key": "sk-secret"}
    assert api.patch(SETUP, {"providers": {"own": provider}}).status_code == 200
    moved = {"providers": {"own": {"base_url": "http://evil.example/v1"}}}
    refused = api.patch(SETUP, moved)
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["field"] == "providers.own.api_key"
    variable = {"providers": {"own": {"api_key": "x", "api_key_env": "AWS_SECRET_ACCESS_KEY"}}}
    assert "api_key_env" in api.patch(SETUP, variable).json()["errors"][0]["field"]
    assert api.patch(SETUP, {"models": {"own/x": {}}}).status_code == 403  # no right for models
    apply_setup_file()
    refused = api.patch(SETUP, {"providers": {"vllm": {"timeout_seconds": 5}}})
    assert (refused.status_code, refused.json()["type"]) == (409, "set_by_file")
    assert "providers.vllm" in api.get(SETUP).json()["from_file"]
    assert Provider.objects.get(name="own").base_url == provider["base_url"]


@pytest.mark.django_db(transaction=True)
def test_three_commands_connect_a_server_and_ask_it(scripted: ScriptedModel) -> None:
    scripted.models = ["qwen3-8b"]
    out, errors = io.StringIO(), io.StringIO()
    streams: dict[str, Any] = {"stdout": out, "stderr": errors}
    call_command("list_models", **streams)
    assert "chatcore add_provider NAME" in out.getvalue()
    call_command("add_provider", "own", "--base-url", scripted.base_url, "--test", **streams)
    assert "own is set." in out.getvalue()
    assert "it lists own/qwen3-8b" in out.getvalue()
    call_command("add_model", "own/qwen3-8b", "--window", "8192", "--default", "--test", **streams)
    assert "own/qwen3-8b answered in" in out.getvalue()
    out.truncate(0)
    call_command("add_model", "own/qwen3-8b", "--window", "8192", "--default", **streams)
    assert "own/qwen3-8b was so already." in out.getvalue()
    call_command("list_models", "--test", **streams)
    assert "own/qwen3-8b\t8192 tokens, default" in out.getvalue()
    with pytest.raises(CommandError, match=r"providers\.own\.nope: There is no such value"):
        call_command("add_provider", "own", "--set", "nope=1", **streams)
    Provider.objects.filter(name="own").update(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(CommandError, match="Not every provider answers"):
        call_command("list_models", "--test", **streams)


def test_a_command_sets_what_a_file_names_and_leaves_it_free(tmp_path: Path) -> None:
    path, out = tmp_path / "once.toml", io.StringIO()
    path.write_text(FILE)
    call_command("apply_setup", path, stdout=out)
    assert "policies.long is set." in out.getvalue()
    assert GroupRights.objects.get().group.name == "staff"
    assert not SetupEntry.objects.exists()
    call_command("apply_setup", path, stdout=out)
    assert "All of it was so already." in out.getvalue()
    path.write_text("[policies.other]\nbase = 'nope'")
    with pytest.raises(CommandError, match=r"once\.toml: policies\.other.* no preset named 'nope'"):
        call_command("apply_setup", path)


def test_a_missing_model_says_what_to_do(api: APIClient, session: Session) -> None:
    AiModel.objects.all().delete()
    answer = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"})
    assert (answer.status_code, answer.json()["type"]) == (409, "no_model")
    assert "chatcore add_provider" in answer.json()["detail"]


def test_a_group_that_was_there_keeps_its_members(setup_file: Path, user: User) -> None:
    group = Group.objects.create(name="staff")
    user.groups.add(group)
    apply_setup_file()
    assert list(group.user_set.all()) == [user]
    assert GroupRights.objects.get().group == group

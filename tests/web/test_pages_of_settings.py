"""The settings as the server renders them: tokens, providers, and the language model."""

import html
import os
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from knox.models import AuthToken

from chatcore.contrib.local_model.weights import WEIGHTS_BY_SIZE
from chatcore.models import Session
from models_registry.models import AiModel
from tests.support.rendered_pages import get_html, others, signed_in
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["others", "signed_in"]

pytestmark = pytest.mark.django_db


def test_a_token_is_shown_once_and_can_be_deleted(signed_in: Client, user: User) -> None:
    html = signed_in.post("/settings/tokens/", {"name": "Backup\0 script"}).content.decode()
    token = AuthToken.objects.get(user=user)
    secret = re.search(rf"<code>({token.token_key}\w+)</code>", html)
    assert secret
    assert secret[1] not in get_html(signed_in, "/settings/")
    assert token.token_key in get_html(signed_in, "/settings/")
    assert "Backup script" in html
    assert "Backup script" in get_html(signed_in, "/settings/")
    assert token.expiry
    signed_in.post(f"/settings/tokens/{token.digest}/delete/")
    assert not AuthToken.objects.exists()


def test_nobody_deletes_anothers_token(signed_in: Client, others: Session) -> None:
    token, _ = AuthToken.objects.create(user=others.owner)
    assert signed_in.post(f"/settings/tokens/{token.digest}/delete/").status_code == 404


def test_only_who_may_change_models_chooses_the_default_one(
    signed_in: Client, user: User, model: AiModel
) -> None:
    second = AiModel.objects.create(provider=model.provider, name="second")
    signed_in.post("/settings/default-model/", {"model": "scripted/second"})
    User.objects.filter(pk=user.pk).update(is_staff=True)
    signed_in.post("/settings/default-model/", {"model": "scripted/second"})
    assert AiModel.objects.find_default() == model
    assert "/settings/default-model/" not in get_html(signed_in, "/settings/")
    user.user_permissions.add(Permission.objects.get(codename="change_aimodel"))
    assert "/settings/default-model/" in get_html(signed_in, "/settings/")
    signed_in.post("/settings/default-model/", {"model": "scripted/second"})
    assert AiModel.objects.find_default() == second
    assert signed_in.post("/settings/default-model/", {"model": "no number"}).status_code == 404


@pytest.fixture
def operator(signed_in: Client, user: User) -> Client:
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    return signed_in


def test_only_who_may_change_providers_sees_them_and_stores_a_key(
    signed_in: Client, user: User, model: AiModel
) -> None:
    assert "The services that run the language models" not in get_html(signed_in, "/settings/")
    for act in ("key", "test"):
        assert (
            signed_in.post(
                f"/settings/providers/{model.provider_id}/{act}/", {"key": "sk-x"}
            ).status_code
            == 403
        )
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    assert "The services that run the language models" in get_html(signed_in, "/settings/")
    row = signed_in.post(
        f"/settings/providers/{model.provider_id}/key/", {"key": " sk-secret "}
    ).content.decode()
    assert "The key is stored encrypted." in row
    model.provider.refresh_from_db()
    assert model.provider.reveal_api_key() == "sk-secret"
    assert "sk-secret" not in row + get_html(signed_in, "/settings/")


def test_a_provider_is_tried_with_one_tiny_call(
    operator: Client, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(text="OK"),
        Reply(status=401, body=b'{"error": {"message": "no such key", "code": "invalid_api_key"}}'),
    )
    address = f"/settings/providers/{model.provider_id}/test/"
    assert "test-model answered in" in operator.post(address).content.decode()
    assert "field-error" in operator.post(address).content.decode()
    calls = [request for request in scripted.requests if request.json]
    assert len(calls) == 2
    AiModel.objects.update(is_active=False)
    assert 'value="test-model"' in operator.post(address).content.decode(), "it is offered again"
    scripted.models = []
    assert "no active language model" in operator.post(address).content.decode()


def test_without_a_model_a_new_chat_says_what_to_do(
    signed_in: Client, user: User, model: AiModel, settings: Any, tmp_path: Path
) -> None:
    settings.LOCAL_MODEL = settings.LOCAL_MODEL | {"PATH": "", "FOLDERS": [tmp_path]}
    assert "onboarding-title" not in get_html(signed_in, "/new/")
    assert "HX-Refresh" in signed_in.get("/new/model/").headers
    AiModel.objects.update(is_active=False)
    page = get_html(signed_in, "/new/")
    assert "No language model yet" in page
    assert "Ask your administrator" in page
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    assert "/settings/#providers" in get_html(signed_in, "/new/model/")


@pytest.mark.parametrize(
    ("start", "has_weights", "said"),
    [
        ("no", True, "start the server without <code>--no-local-model</code>"),
        ("not installed", True, "chatcore[local-model]"),
        ("yes", False, "is on its way"),
        ("yes", True, "A small model is starting"),
        ("unknown", True, "<code>chatcore local-model</code>"),
    ],
)
def test_a_new_chat_says_of_the_embedded_model_what_serve_does_with_it(
    signed_in: Client, settings: Any, tmp_path: Path, start: str, has_weights: bool, said: str
) -> None:
    if has_weights:
        (tmp_path / WEIGHTS_BY_SIZE["0.5b"][1].file_name).touch()
    settings.LOCAL_MODEL = settings.LOCAL_MODEL | {
        "SIZE": "0.5b",
        "PATH": "",
        "FOLDERS": [tmp_path],
        "START": start,
    }
    assert said in html.unescape(get_html(signed_in, "/new/model/"))


def test_the_embedded_model_shows_how_far_it_is(
    signed_in: Client, settings: Any, tmp_path: Path
) -> None:
    AiModel.objects.update(is_active=False)
    settings.LOCAL_MODEL = settings.LOCAL_MODEL | {
        "SIZE": "0.5b",
        "PATH": "",
        "FOLDERS": [tmp_path],
        "START": "yes",
    }
    weights = WEIGHTS_BY_SIZE["0.5b"][1]
    partial = tmp_path / f"{weights.file_name}.partial"
    partial.touch()
    os.truncate(partial, weights.size // 4)
    assert "<span>24 %</span>" in get_html(
        signed_in, "/new/model/"
    ) or "<span>25 %</span>" in get_html(signed_in, "/new/model/")
    os.utime(partial, (1, 1))  # it stopped long ago
    assert "No language model yet" in get_html(signed_in, "/new/model/")
    partial.rename(tmp_path / weights.file_name)
    assert "A small model is starting" in get_html(signed_in, "/new/model/")

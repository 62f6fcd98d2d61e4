"""Tokens and models over REST, and the command that makes a token."""

from collections.abc import Callable
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from knox.models import AuthToken
from rest_framework.test import APIClient

from models_registry.models import AiModel

TOKENS = "/api/v1/tokens"


def build_token_client(token: str) -> APIClient:
    return APIClient(headers={"Authorization": f"Bearer {token}"})


def test_a_token_is_shown_once_and_works(api: APIClient) -> None:
    token_data = api.post(TOKENS, {}).json()
    assert build_token_client(token_data["token"]).get(TOKENS).status_code == 200
    assert token_data["token"] not in api.get(TOKENS).content.decode()
    assert token_data["id"] in {row["id"] for row in api.get(TOKENS).json()["results"]}


def test_a_token_lives_as_long_as_asked(api: APIClient) -> None:
    assert api.post(TOKENS, {}).json()["expires_at"] is None
    assert api.post(TOKENS, {"expires_in_days": 1}).json()["expires_at"] is not None


@pytest.mark.parametrize(
    "body",
    [{"expires_in_days": 0}, {"expires_in_days": "1"}, {"expires_in_days": 10**30}, {"name": "x"}],
)
def test_a_wrong_body_is_refused(api: APIClient, body: dict[str, object]) -> None:
    assert api.post(TOKENS, body).status_code == 400


def test_a_revoked_token_is_401(api: APIClient) -> None:
    token_data = api.post(TOKENS, {}).json()
    assert api.delete(f"{TOKENS}/{token_data['id']}").status_code == 204
    assert build_token_client(token_data["token"]).get(TOKENS).status_code == 401
    assert api.delete(f"{TOKENS}/{token_data['id']}").status_code == 404


def test_all_tokens_can_be_revoked_at_once(api: APIClient) -> None:
    assert api.delete(TOKENS).status_code == 204
    assert api.get(TOKENS).status_code == 401


def test_another_users_token_is_404(api: APIClient, as_user: Callable[[User], APIClient]) -> None:
    row, _ = AuthToken.objects.create(User.objects.create_user("bob"))
    assert api.delete(f"{TOKENS}/{row.token_key}").status_code == 404
    assert api.delete(f"{TOKENS}/%00").status_code == 404
    assert AuthToken.objects.filter(pk=row.pk).exists()


def test_the_command_prints_a_working_token_and_nothing_else(user: User) -> None:
    out = StringIO()
    call_command("create_token", "alice", stdout=out)
    assert build_token_client(out.getvalue().strip()).get(TOKENS).status_code == 200
    with pytest.raises(CommandError, match="nobody"):
        call_command("create_token", "nobody")


def test_models_are_those_that_can_be_used(api: APIClient, model: AiModel) -> None:
    AiModel.objects.create(provider=model.provider, name="switched-off", is_active=False)
    (row,) = api.get("/api/v1/models").json()["results"]
    assert (
        row
        | {
            "id": "scripted/test-model",
            "provider": "scripted",
            "context_window_size": 8192,
            "is_default": True,
        }
        == row
    )
    assert "key" not in str(row)

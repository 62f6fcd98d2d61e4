"""Tokens and models over REST, and the command that makes a token."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client, override_settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from knox.models import AuthToken
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.test import APIClient

from chatcore.accounts.token_uses import store_uses
from chatcore.accounts.tokens import MAX_TOKENS, TooManyTokens, create_token
from chatcore.base.rest import auth, token_uses
from chatcore.contrib.audit.models import AuditEntry
from chatcore.models import TokenName
from models_registry.models import AiModel
from tests.support.waiting import wait_until

TOKENS = "/api/v1/tokens"
BETTER_HASHER = "django.contrib.auth.hashers.ScryptPasswordHasher"


def build_token_client(token: str) -> APIClient:
    return APIClient(headers={"Authorization": f"Bearer {token}"})


def test_a_token_is_shown_once_and_works(api: APIClient) -> None:
    token_data = api.post(TOKENS, {}).json()
    assert build_token_client(token_data["token"]).get(TOKENS).status_code == 200
    assert token_data["token"] not in api.get(TOKENS).content.decode()
    assert token_data["id"] in {row["id"] for row in api.get(TOKENS).json()["results"]}


def test_a_token_lives_as_long_as_asked(api: APIClient) -> None:
    assert api.post(TOKENS, {"expires_in_days": None}).json()["expires_at"] is None
    for body, days in (({"expires_in_days": 1}, 1), ({}, 90)):
        expires_at = parse_datetime(api.post(TOKENS, body).json()["expires_at"])
        assert expires_at
        assert round((expires_at - timezone.now()) / timedelta(days=1)) == days


def test_a_token_has_a_name(api: APIClient) -> None:
    assert api.post(TOKENS, {"name": " Backup script "}).json()["name"] == "Backup script"
    assert [row["name"] for row in api.get(TOKENS).json()["results"]] == ["Backup script", ""]
    assert api.delete(TOKENS).status_code == 204
    assert not TokenName.objects.exists()


def test_a_new_password_revokes_the_tokens_and_the_same_one_does_not(
    api: APIClient, user: User
) -> None:
    others_token, _ = AuthToken.objects.create(User.objects.create_user("bob"))
    with override_settings(PASSWORD_HASHERS=[BETTER_HASHER, *settings.PASSWORD_HASHERS]):
        assert user.check_password("alice's password")  # which hashes it anew
    assert api.get(TOKENS).status_code == 200
    user.set_password("another password 8")
    user.save()
    assert api.get(TOKENS).status_code == 401
    assert AuthToken.objects.get() == others_token


@pytest.mark.parametrize(
    "body",
    [
        {"expires_in_days": 0},
        {"expires_in_days": "1"},
        {"expires_in_days": 10**30},
        {"name": 1},
        {"word": "x"},
    ],
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


def test_a_request_costs_the_same_however_many_tokens_its_user_has(
    user: User, django_assert_num_queries: Any
) -> None:
    _, token = AuthToken.objects.create(user)
    for _ in range(10):
        AuthToken.objects.create(user, expiry=timedelta(days=-1))
    with django_assert_num_queries(1) as queries:
        assert auth.find_sender({b"authorization": f"Bearer {token}".encode()}) == user
    assert '"knox_authtoken"."digest" = ' in queries[0]["sql"]
    assert AuthToken.objects.count() == 11


@pytest.mark.parametrize("text", ["", "x", "read_", "a" * 300, "ä", "\udc80"])
def test_no_other_text_is_a_token(user: User, text: str) -> None:
    AuthToken.objects.create(user)
    with pytest.raises(AuthenticationFailed):
        auth.BearerTokenAuthentication().authenticate_credentials(
            text.encode(errors="surrogateescape")
        )


def test_a_token_says_whether_conversations_of_programs_are_kept(
    api: APIClient, user: User, client: Client
) -> None:
    assert api.post(TOKENS, {"name": "a"}).json()["keeps_conversations"] is True
    made = api.post(TOKENS, {"name": "b", "keeps_conversations": False}).json()
    assert made["keeps_conversations"] is False
    call_command("create_token", user.username, "--name=c", "--without-conversations")
    client.force_login(user)
    page = client.get("/settings/").content.decode()
    assert "Keep the conversations of programs" in page
    client.post("/settings/tokens/", {"name": "d", "keeps_conversations": "true"})
    client.post("/settings/tokens/", {"name": "e"})  # the box was cleared
    rows = api.get(TOKENS).json()["results"]
    kept = {row["name"]: row["keeps_conversations"] for row in rows if row["name"]}
    assert kept == {"a": True, "b": False, "c": False, "d": True, "e": False}


def test_keeping_conversations_of_programs_is_changed_for_a_token_that_exists(
    api: APIClient, user: User, client: Client
) -> None:
    token_id = api.post(TOKENS, {"name": ""}).json()["id"]
    path = f"{TOKENS}/{token_id}"
    changed = api.patch(path, {"keeps_conversations": False})
    assert (changed.status_code, changed.json()["keeps_conversations"]) == (200, False)
    assert api.patch(path, {}).json()["keeps_conversations"] is False
    assert api.patch(path, {"keeps_conversations": "no"}).status_code == 400
    assert api.patch(path, {"scope": "all"}).status_code == 400
    another = User.objects.create_user("another")
    _, others_token = create_token(another, name="", expiry=None)
    others_answer = build_token_client(others_token).patch(
        path, {"keeps_conversations": True}, format="json"
    )
    assert others_answer.status_code == 404
    assert AuditEntry.objects.filter(act="token.changed", detail=token_id).count() == 1
    client.force_login(user)
    token = AuthToken.objects.get(token_key=token_id)
    switch = f"/settings/tokens/{token.digest}/conversations/"
    assert switch in client.get("/settings/").content.decode()
    for fields, is_kept in (({"on": "true"}, True), ({}, False)):
        assert client.post(switch, fields).status_code == 200
        rows = api.get(TOKENS).json()["results"]
        assert [row["keeps_conversations"] for row in rows if row["id"] == token_id] == [is_kept]
    client.force_login(another)
    assert client.post(switch, {"on": "true"}).status_code == 404


def test_an_expired_token_and_one_of_a_switched_off_user_are_401(user: User) -> None:
    _, token = AuthToken.objects.create(user, expiry=timedelta(seconds=30))
    client = build_token_client(token)
    assert client.get(TOKENS).status_code == 200
    User.objects.update(is_active=False)
    assert client.get(TOKENS).status_code == 401
    User.objects.update(is_active=True)
    AuthToken.objects.update(expiry=timezone.now())
    assert client.get(TOKENS).status_code == 401


def test_a_user_has_no_more_than_a_hundred_valid_tokens(
    api: APIClient, user: User, client: Client
) -> None:
    tokens = [AuthToken.objects.create(user)[0] for _ in range(MAX_TOKENS - 2)]
    AuthToken.objects.create(user, expiry=timedelta(days=-1))  # counts no more
    count = AuthToken.objects.filter(user=user).count()
    while count < MAX_TOKENS + 1:
        assert api.post(TOKENS, {}).status_code == 201
        count += 1
    refusal = api.post(TOKENS, {})
    assert (refusal.status_code, refusal.json()["type"]) == (409, "too_many_tokens")
    assert str(MAX_TOKENS) in refusal.json()["detail"]
    client.force_login(user)
    assert client.post("/settings/tokens/", {"scope": "all"}).status_code == 409
    with pytest.raises(CommandError, match=str(MAX_TOKENS)):
        call_command("create_token", user.username)
    tokens[0].delete()
    assert api.post(TOKENS, {}).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_of_two_tokens_at_once_the_last_place_is_given_once(user: User) -> None:
    for _ in range(MAX_TOKENS - 1):
        AuthToken.objects.create(user)

    def create() -> bool:
        try:
            create_token(user, name="", expiry=None)
        except TooManyTokens:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: create(), range(4)))
    assert sorted(results) == [False, False, False, True]


def test_another_users_token_is_404(api: APIClient, as_user: Callable[[User], APIClient]) -> None:
    row, _ = AuthToken.objects.create(User.objects.create_user("bob"))
    assert api.delete(f"{TOKENS}/{row.token_key}").status_code == 404
    assert api.delete(f"{TOKENS}/%00").status_code == 404
    assert AuthToken.objects.filter(pk=row.pk).exists()


def test_the_command_prints_a_working_token_and_nothing_else(user: User) -> None:
    out = StringIO()
    call_command("create_token", "alice", stdout=out)
    assert build_token_client(out.getvalue().strip()).get(TOKENS).status_code == 200
    assert AuthToken.objects.get(user=user).expiry is not None
    call_command("create_token", "alice", "--name=Backup", "--days=0", stdout=out)
    assert TokenName.objects.get(name="Backup").token.expiry is None
    with pytest.raises(CommandError, match="--days is -1"):
        call_command("create_token", "alice", "--days=-1")
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


@pytest.mark.django_db(transaction=True)
def test_a_token_that_is_revoked_meanwhile_takes_no_other_use_with_it(user: User) -> None:
    kept, _ = create_token(user, name="kept", expiry=None)
    revoked, _ = create_token(user, name="revoked", expiry=None)
    for token in (kept, revoked):
        token_uses.note_use(token.pk)

    def store() -> None:
        try:
            store_uses()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other, transaction.atomic():
        revoked.delete()
        storing = other.submit(store)
        if connection.vendor == "postgresql":  # on SQLite it waits before it reads anything
            wait_until(has_waiting_statement, what="the other transaction to wait")
    storing.result()
    assert TokenName.objects.get().used_at is not None
    assert list(AuthToken.objects.all()) == [kept]


def has_waiting_statement() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])

"""The scopes of tokens: what each may do, and that it stays so."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from chatcore.accounts.tokens import create_token
from chatcore.models import Session
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)
TOKENS = "/api/v1/tokens"


def build_client(user: User, scope: str) -> APIClient:
    _, token = create_token(user, name="", expiry=None, scope=scope)
    return APIClient(headers={"Authorization": f"Bearer {token}"})


def test_a_token_that_reads_writes_nothing(user: User, session: Session) -> None:
    client = build_client(user, "read")
    address = f"/api/v1/sessions/{session.pk}"
    assert client.get(address).status_code == 200
    for answer in (
        client.patch(address, {"title": "Mine"}),
        client.delete(address),
        client.post(f"{address}/messages", {"content": "Hi"}),
        client.post("/v1/chat/completions", {"model": "m", "messages": []}),
        client.post(TOKENS, {}),
    ):
        assert answer.status_code == 403
    assert "scope is read" in client.delete(address).json()["detail"]


def test_a_token_that_chats_reaches_nothing_of_the_account(user: User, session: Session) -> None:
    client = build_client(user, "chat")
    address = f"/api/v1/sessions/{session.pk}"
    assert client.patch(address, {"title": "Mine"}).status_code == 200
    for path in (TOKENS, f"{TOKENS}/x", "/api/v1/webhooks", "/api/v1/mcp_servers"):
        assert client.get(path).status_code == 403, path
        assert client.post(path, {}).status_code == 403, path


def test_a_header_of_another_name_has_the_same_scope(user: User) -> None:
    _, token = create_token(user, name="", expiry=None, scope="read")
    client = APIClient(headers={"x-api-key": token})
    assert client.post("/v1/messages", {}).status_code == 403


def test_a_scope_is_asked_for_and_shown(api: APIClient) -> None:
    row = api.post(TOKENS, {"scope": "chat"}).json()
    assert (row["scope"], row["token"][:5]) == ("chat", "chat_")
    assert api.post(TOKENS, {}).json()["scope"] == "all"
    assert api.post(TOKENS, {"scope": "none"}).status_code == 400
    assert {row["scope"] for row in api.get(TOKENS).json()["results"]} >= {"chat", "all"}


def test_another_beginning_does_not_widen_a_scope(user: User) -> None:
    _, token = create_token(user, name="", expiry=None, scope="read")
    forged = token.removeprefix("read_")
    client = APIClient(headers={"Authorization": f"Bearer {forged}"})
    assert client.get(TOKENS).status_code == 401


def test_a_token_that_chats_makes_no_public_link(user: User, session: Session) -> None:
    path = f"/api/v1/sessions/{session.pk}/shares"
    refused = build_client(user, "chat").post(path, {})
    assert (refused.status_code, "public links" in refused.json()["detail"]) == (403, True)
    assert build_client(user, "chat").get("/api/v1/shares").status_code == 200
    assert build_client(user, "all").post(path, {}).status_code != 403


@pytest.mark.parametrize("store", [True, False])
def test_a_token_that_chats_brings_no_servers(
    user: User, session: Session, scripted: ScriptedModel, store: bool
) -> None:
    server = {"type": "mcp", "server_label": "a", "server_url": "https://a.test/mcp"}
    body = {"input": "Hi", "tools": [server], "store": store}
    for path in ("/v1/responses", "/v1/responses/input_tokens"):
        refused = build_client(user, "chat").post(path, body)
        assert refused.status_code == 403, path
        assert "MCP servers" in refused.json()["error"]["message"], path
    assert scripted.requests == []
    assert build_client(user, "chat").post("/v1/responses", {"input": "Hi"}).status_code == 200


def test_the_page_says_what_a_token_may_do_where_it_is_made(client: Client, user: User) -> None:
    client.force_login(user)
    page = client.get("/settings/").content.decode()
    assert "reads everything of yours, the export too" in page

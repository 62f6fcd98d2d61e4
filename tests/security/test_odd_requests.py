"""Requests that no page sends are refused in words, and no secret of a path is logged."""

import asyncio
import base64
import json
import logging
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from chatcore.asgi import serve
from chatcore.models import Session
from chatcore.serving.logs import build_line_formatter

pytestmark = pytest.mark.django_db(transaction=True)


def build_scope(kind: str, path: str, client: Client, authorization: bytes) -> dict[str, Any]:
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    return {
        "type": kind,
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 5000),
        "extensions": {"websocket.http.response": {}},
        "headers": [
            (b"host", b"127.0.0.1"),
            (b"cookie", cookies.encode()),
            (b"authorization", authorization),
            (b"content-type", b"application/json"),
            (b"accept", b"application/json, text/event-stream"),
        ],
    }


async def ask(scope: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    communicator = ApplicationCommunicator(serve, scope)
    await communicator.send_input(message)
    answer: dict[str, Any] = await communicator.receive_output(timeout=60)
    await communicator.wait(timeout=60)
    return answer


@pytest.mark.parametrize("authorization", [b"", b" "])
def test_a_cookie_beside_an_empty_token_opens_nothing(
    client: Client, user: User, authorization: bytes
) -> None:
    client.force_login(user)
    scope = build_scope("websocket", "/v1/responses", client, authorization)
    answer = asyncio.run(ask(scope, {"type": "websocket.connect"}))
    assert answer["type"] != "websocket.accept"
    assert answer.get("status", 401) == 401
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    scope = build_scope("http", "/mcp", client, authorization)
    answer = asyncio.run(ask(scope, {"type": "http.request", "body": json.dumps(body).encode()}))
    assert answer["status"] == 401


@pytest.mark.parametrize("query", ["", "?q=", "?chat=", "?q=&chat=", "?q=hi&chat="])
def test_a_search_without_words_or_chat_is_a_page(
    client: Client, user: User, session: Session, query: str
) -> None:
    client.force_login(user)
    assert client.get(f"/search/{query}").status_code == 200


@pytest.mark.parametrize("date", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
def test_a_cursor_out_of_all_time_is_refused(api: APIClient, date: str) -> None:
    for path in ("tokens", "sessions", "webhooks"):
        text = base64.urlsafe_b64encode(json.dumps([0, date, "x"]).encode()).decode().rstrip("=")
        answer = api.get(f"/api/v1/{path}", {"cursor": text})
        assert answer.status_code == 400, path
        assert answer.json()["errors"][0]["field"] == "cursor"


@pytest.mark.parametrize(
    "path",
    [
        "/s/SECRET/",
        "/s/SECRET/files/1/",
        "/login/once/SECRET/",
        "/invitation/SECRET/",
        "/account/email/SECRET/",
        "/account/password/reset/1-SECRET/",
        "/chat/s/SECRET/",
    ],
)
@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_no_line_of_the_log_has_the_secret_of_a_path(path: str, form: str) -> None:
    record = logging.LogRecord(
        "django.security.csrf", logging.WARNING, "", 1, "Forbidden (%s): %s", ("CSRF", path), None
    )
    line = build_line_formatter(form).format(record)
    assert "SECRET" not in line
    assert "Forbidden (CSRF" in line

"""Headers around every answer of the API: the request's id, other origins, limits."""

import re
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from openai import OpenAI

from chatcore.base import environment
from tests.support.openai_client import HELLO, MODEL, client

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)
ORIGIN = "https://app.example.com"


@pytest.mark.parametrize("path", ["/v1/models", "/api/v1/sessions", "/login/"])
def test_every_answer_has_an_id(path: str) -> None:
    answers = [Client().get(path) for _ in range(2)]
    ids = [answer.headers["X-Request-Id"] for answer in answers]
    assert ids[0] != ids[1]


def test_a_client_may_name_its_request(client: OpenAI) -> None:
    answer = client.models.with_raw_response.list(extra_headers={"X-Request-Id": "job-7:2"})
    assert answer.headers["x-request-id"] == "job-7:2"
    assert client.models.list()._request_id


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "one\u2028two"])
def test_a_name_that_cannot_be_logged_is_replaced(name: str) -> None:
    answer = Client().get("/v1/models", headers={"X-Request-Id": name})
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["X-Request-Id"])


def test_pages_of_other_origins_are_refused_by_default() -> None:
    answer = Client().options("/v1/models", headers=build_preflight(ORIGIN))
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_pages_of_an_origin_that_is_named_may_use_the_api(settings: Any) -> None:
    settings.CORS_ALLOWED_ORIGINS = [ORIGIN]
    for path in ("/v1/chat/completions", "/api/v1/sessions"):
        answer = Client().options(path, headers=build_preflight(ORIGIN))
        assert answer.status_code == 200
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert "Access-Control-Allow-Credentials" not in answer.headers
        other = Client().options(path, headers=build_preflight("https://evil.example.com"))
        assert "Access-Control-Allow-Origin" not in other.headers
    page = Client().get("/login/", headers={"Origin": ORIGIN})
    assert "Access-Control-Allow-Origin" not in page.headers


def build_preflight(origin: str) -> dict[str, str]:
    return {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }


def test_an_origin_with_a_path_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATCORE_CORS_ORIGINS", "https://app.example.com, https://b.example/path")
    with pytest.raises(ImproperlyConfigured, match="CHATCORE_CORS_ORIGINS has 'https"):
        environment.read_origins("CHATCORE_CORS_ORIGINS")


def test_an_answer_says_how_many_turns_are_left(client: OpenAI, settings: Any) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 30}
    create = client.chat.completions.with_raw_response.create
    left = [
        int(create(model=MODEL, messages=HELLO).headers["x-ratelimit-remaining-requests"])
        for _ in range(2)
    ]
    assert left == [29, 28]

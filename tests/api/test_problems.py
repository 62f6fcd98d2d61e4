"""Authentication, and the form of problems."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken
from rest_framework.test import APIClient

from chatcore.api import sessions
from chatcore.models import Session

SESSIONS = "/api/v1/sessions"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "header",
    [None, "Bearer", "Bearer wrong", "Bearer a b", "Bearer tökén", "Basic YTpi", "Token x"],
)
def test_a_missing_or_bad_token_is_401(header: str | None) -> None:
    refusal = APIClient().get(SESSIONS, headers={"Authorization": header} if header else {})
    assert (refusal.status_code, refusal["Content-Type"], refusal["WWW-Authenticate"]) == (
        401,
        "application/problem+json",
        "Bearer",
    )


def test_an_expired_token_is_401(user: User) -> None:
    _, token = AuthToken.objects.create(user, expiry=timedelta(seconds=-1))
    assert (
        APIClient().get(SESSIONS, headers={"Authorization": f"Bearer {token}"}).status_code == 401
    )


def test_a_bad_token_is_401_even_with_a_session_cookie(user: User) -> None:
    browser = APIClient()
    browser.force_login(user)
    assert browser.get(SESSIONS).status_code == 200
    assert browser.get(SESSIONS, headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_a_session_cookie_needs_the_csrf_token_to_write(user: User) -> None:
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(user)
    refusal = browser.post(SESSIONS, {})
    assert (refusal.status_code, refusal["Content-Type"]) == (403, "application/problem+json")


def test_an_error_nobody_foresaw_is_a_500_without_its_trace(
    api: APIClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(sessions.SessionListView, "get_queryset", broken)
    failed = api.get(SESSIONS)
    assert (failed.status_code, failed.json()["type"]) == (500, "internal_error")
    assert "secret" not in failed.content.decode()
    assert "the secret of the house" in caplog.text


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address", ["/api/", "/api/v1/nothing", "/api/v1/sessions/not-a-uuid", "/api/v2/sessions"]
)
def test_an_address_that_is_none_is_a_problem_too(address: str) -> None:
    for refusal in (APIClient().get(address), APIClient().post(address, {})):
        assert (refusal.status_code, refusal["Content-Type"]) == (404, "application/problem+json")


def test_an_answer_is_json_whatever_the_client_accepts(api: APIClient, session: Session) -> None:
    for accepted in ("text/html", "text/event-stream", "image/png", "nonsense"):
        assert api.get(SESSIONS, headers={"Accept": accepted})["Content-Type"] == "application/json"
    refusal = api.get(f"{SESSIONS}?format=xml")
    assert (refusal.status_code, refusal["Content-Type"]) == (400, "application/problem+json")
    answer = api.get("/v1/models?format=xml")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")


def test_a_problem_names_nested_fields_by_path_and_pointer(
    api: APIClient, session: Session
) -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}, {"role": "robot", "content": "Hi"}]}
    problem = api.post(f"{SESSIONS}/{session.pk}/messages/import", body).json()
    assert set(problem) == {"type", "title", "status", "detail", "errors"}
    assert problem["errors"][0]["field"] == "messages[1].role"
    assert problem["errors"][0]["pointer"] == "#/messages/1/role"


def test_a_user_who_was_switched_off_is_401(
    user: User, as_user: Callable[[User], APIClient]
) -> None:
    client = as_user(user)
    User.objects.update(is_active=False)
    assert client.get(SESSIONS).status_code == 401

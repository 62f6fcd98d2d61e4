"""The database is locked or full: every API and page says so, and nobody gets a 500."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from knox.models import AuthToken
from rest_framework.test import APIClient

from chatcore.base.rest.commits import NOTHING_STORED, PARTLY_STORED
from chatcore.models import Message, Session
from tests.support.openai_client import HELLO, MODEL
from tests.support.outages import fill_sqlite, lock_sqlite

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("postgresql" in connection.vendor, reason="these are faults of SQLite"),
]


@pytest.fixture
def page(user: User) -> Client:
    """A browser that is signed in, and that gets a response for an exception as a real one does."""
    browser = Client(raise_request_exception=False)
    browser.force_login(user)
    return browser


def send(api: APIClient, session: Session) -> Any:
    return api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"})


def test_a_locked_database_is_503_and_nothing_is_stored(api: APIClient, session: Session) -> None:
    with lock_sqlite():
        refusal = send(api, session)
    problem = refusal.json()
    assert (refusal.status_code, problem["type"]) == (503, "database_unavailable")
    assert (refusal["Content-Type"], refusal["Retry-After"]) == ("application/problem+json", "2")
    assert NOTHING_STORED in problem["detail"]
    assert not Message.objects.exists()
    assert send(api, session).status_code == 201


def test_a_locked_database_can_still_be_read(api: APIClient, session: Session) -> None:
    with lock_sqlite():
        assert api.get(f"/api/v1/sessions/{session.pk}/messages").status_code == 200


def test_a_full_disk_is_507_and_nothing_is_stored(api: APIClient, session: Session) -> None:
    body = {"messages": [{"role": "user", "content": "x" * 200_000}] * 8}
    with fill_sqlite():
        refusal = api.post(f"/api/v1/sessions/{session.pk}/messages/import", body)
    problem = refusal.json()
    assert (refusal.status_code, problem["type"], problem["title"]) == (
        507,
        "storage_full",
        "Insufficient Storage",
    )
    assert NOTHING_STORED in problem["detail"]
    assert refusal["Retry-After"]
    assert not Message.objects.exists()


def test_an_openai_client_gets_the_error_in_its_own_form(user: User, session: Session) -> None:
    headers = {
        "Authorization": f"Bearer {AuthToken.objects.create(user)[1]}",
        "X-Session-Id": str(session.pk),
    }
    client = APIClient(headers=headers)
    body = {"model": MODEL, "messages": HELLO}
    with lock_sqlite():
        refusal = client.post("/v1/chat/completions", body)
    assert (refusal.status_code, refusal["Retry-After"]) == (503, "2")
    error = refusal.json()["error"]
    assert (error["type"], error["code"]) == ("server_error", "database_unavailable")
    assert NOTHING_STORED in error["message"]


def test_a_change_that_was_committed_before_is_not_denied(
    api: APIClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session is created and the database is locked before the response is built."""
    from chatcore.api import sessions

    original = sessions.archive_surplus_sessions

    def lock_then_archive(session: Session) -> None:
        with lock_sqlite():
            Session.objects.filter(pk=session.pk).update(title="too late")
        original(session)

    monkeypatch.setattr(sessions, "archive_surplus_sessions", lock_then_archive)
    refusal = api.post("/api/v1/sessions", {})
    assert refusal.status_code == 503
    assert PARTLY_STORED in refusal.json()["detail"]


def test_a_page_says_it_calmly_and_without_a_trace(page: Client, session: Session) -> None:
    with lock_sqlite():
        answer = page.post(f"/c/{session.pk}/pin/", {"on": "true"})
    text = answer.content.decode()
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert "One moment" in text
    assert "Traceback" not in text
    assert "locked" not in text


def test_htmx_gets_one_sentence(page: Client, session: Session) -> None:
    with lock_sqlite():
        answer = page.post(f"/c/{session.pk}/pin/", {"on": "true"}, headers={"HX-Request": "true"})
    assert (answer.status_code, answer["Content-Type"]) == (503, "text/plain; charset=utf-8")
    assert answer.content.decode().startswith("The server cannot use its database")


def test_signing_in_waits_for_the_database(page: Client, user: User) -> None:
    page.logout()
    form = {"username": "alice", "password": "alice's password"}
    with lock_sqlite():
        assert page.post("/login/", form).status_code == 503
    assert page.post("/login/", form).status_code == 302


@pytest.mark.parametrize("address", ["/settings/", "/api/v1/sessions", "/v1/nowhere"])
def test_middleware_that_cannot_store_is_no_500_either(
    page: Client, session: Session, settings: Any, address: str
) -> None:
    """With this setting the middleware of sessions writes after each view, outside of it."""
    settings.SESSION_SAVE_EVERY_REQUEST = True
    page.get("/settings/")
    with lock_sqlite():
        answer = page.get(address)
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert "Traceback" not in answer.content.decode()
    if address.startswith("/v1/"):
        assert answer.json()["error"]["code"] == "database_unavailable"
    elif address.startswith("/api/"):
        assert answer.json()["type"] == "database_unavailable"


def test_an_error_of_ours_stays_a_500(api: APIClient, session: Session) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE knox_authtoken RENAME TO knox_elsewhere")
    try:
        api.raise_request_exception = False
        assert api.get("/api/v1/sessions").status_code == 500
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE knox_elsewhere RENAME TO knox_authtoken")

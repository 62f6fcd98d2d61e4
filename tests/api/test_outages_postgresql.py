"""PostgreSQL is cut off in the middle of a request: the answer says what was stored."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import close_old_connections, connection
from django.test import Client
from knox.models import AuthToken
from rest_framework.test import APIClient

from chatcore.base.rest.commits import NOTHING_STORED, UNKNOWN_STORED
from chatcore.models import Message, Session
from tests.support.outages import create_postgresql_database, reach_through_proxy
from tests.support.tcp_proxy import TcpProxy

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.postgres,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="these are faults of PostgreSQL"),
]
IMPORT = {"messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with create_postgresql_database() as name:
        yield name


@pytest.fixture
def proxy(transactional_db: None, database: str) -> Iterator[TcpProxy]:
    with reach_through_proxy(database) as proxy:
        yield proxy


@pytest.fixture
def user(proxy: TcpProxy) -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def session(user: User) -> Session:
    return Session.objects.create(owner=user)


@pytest.fixture
def api(user: User) -> APIClient:
    return APIClient(headers={"Authorization": f"Bearer {AuthToken.objects.create(user)[1]}"})


def import_history(api: APIClient, session: Session) -> Any:
    return api.post(f"/api/v1/sessions/{session.pk}/messages/import", IMPORT)


def test_a_request_is_503_while_it_is_away_and_works_when_it_is_back(
    proxy: TcpProxy, api: APIClient, session: Session
) -> None:
    browser = Client(raise_request_exception=False)
    browser.cookies["sessionid"] = "a-session-that-must-be-looked-up"
    proxy.disconnect()
    refusals = [import_history(api, session), api.get("/api/v1/sessions")]
    page = browser.get("/login/")
    proxy.reconnect()
    for refusal in refusals:
        assert (refusal.status_code, refusal.headers.get("Retry-After")) == (503, "5")
        assert refusal.json()["type"] == "database_unavailable"
    assert NOTHING_STORED in refusals[0].json()["detail"]
    assert NOTHING_STORED not in refusals[1].json()["detail"]
    assert page.status_code == 503
    assert "One moment" in page.content.decode()
    close_old_connections()  # as after every request; the client of the tests does not do it
    assert import_history(api, session).status_code == 201


def test_a_transaction_that_is_cut_has_stored_nothing(
    proxy: TcpProxy, api: APIClient, session: Session
) -> None:
    def cut_after_insert(execute: Callable[..., Any], sql: str, *arguments: Any) -> Any:
        result = execute(sql, *arguments)
        if sql.startswith('INSERT INTO "chatcore_message"'):
            proxy.disconnect()
        return result

    with connection.execute_wrapper(cut_after_insert):
        refusal = import_history(api, session)
    proxy.reconnect()
    assert (refusal.status_code, NOTHING_STORED in refusal.json()["detail"]) == (503, True)
    assert not Message.objects.exists()


def test_a_connection_that_breaks_in_the_commit_leaves_it_open_what_was_stored(
    proxy: TcpProxy, api: APIClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = connection._commit  # type: ignore[attr-defined]

    def cut_before_commit() -> None:
        proxy.disconnect()
        original()

    monkeypatch.setattr(connection, "_commit", cut_before_commit)
    refusal = import_history(api, session)
    monkeypatch.undo()
    proxy.reconnect()
    assert (refusal.status_code, UNKNOWN_STORED in refusal.json()["detail"]) == (503, True)


def test_a_pool_that_has_no_connection_in_time_is_503(
    transactional_db: None, database: str
) -> None:
    pool = {"min_size": 1, "max_size": 1, "timeout": 1.0}
    with reach_through_proxy(database, pool=pool) as proxy:
        user = User.objects.create_user("bob")
        api = APIClient(headers={"Authorization": f"Bearer {AuthToken.objects.create(user)[1]}"})
        proxy.disconnect()
        connection.close()
        refusal = api.get("/api/v1/sessions")
    assert (refusal.status_code, refusal.headers.get("Retry-After")) == (503, "5")

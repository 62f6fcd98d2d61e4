"""What is open ends for whoever is signed out, within seconds and by a few queries for all."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as BrowserSession
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from knox.models import AuthToken
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from chatcore.accounts import sign_out_watch
from chatcore.accounts.senders import Sender, find_signed_in
from chatcore.models import Session
from models_registry.models import Provider
from tests.conftest import Live
from tests.support.event_streams import open_api_client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.django_db(transaction=True)
NEW_PASSWORD = "another long password 8"


class OpenStream:
    """A stream that is read in a thread to its end."""

    def __init__(self, client: httpx2.Client, method: str, address: str, **options: Any) -> None:
        self.lines: list[str] = []
        self.has_ended = threading.Event()
        self.status = 0
        self._request = (client, method, address, options)
        threading.Thread(target=self._read, daemon=True).start()
        wait_until(lambda: self.lines, what="the first line of the stream")

    def _read(self) -> None:
        client, method, address, options = self._request
        with client.stream(method, address, timeout=120, **options) as response:
            self.status = response.status_code
            for line in response.iter_lines():
                self.lines.append(line)
        self.has_ended.set()


@pytest.fixture(autouse=True)
def check_often(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sign_out_watch.CHECK_SECONDS <= 4
    monkeypatch.setattr(sign_out_watch, "CHECK_SECONDS", 0.05)


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob")


@pytest.fixture
def browser(live: Live, user: User) -> Iterator[httpx2.Client]:
    signed_in = Client()
    signed_in.force_login(user)
    key = signed_in.cookies[settings.SESSION_COOKIE_NAME].value
    cookies = {settings.SESSION_COOKIE_NAME: key}
    with httpx2.Client(
        base_url=f"{live.url}/api/v1", cookies=cookies, timeout=PATIENCE_SECONDS
    ) as client:
        yield client


def log_out(user: User) -> None:
    BrowserSession.objects.all().delete()


def revoke(user: User) -> None:
    AuthToken.objects.filter(user=user).delete()


def let_expire(user: User) -> None:
    past = timezone.now() - timedelta(seconds=1)
    AuthToken.objects.filter(user=user).update(expiry=past)
    BrowserSession.objects.update(expire_date=past)


def deactivate(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def change_password(user: User) -> None:
    user.set_password(NEW_PASSWORD)
    user.save()


@pytest.mark.parametrize("act", [revoke, let_expire, deactivate, change_password])
def test_a_tokens_stream_ends(
    live: Live, user: User, bob: User, session: Session, act: Callable[[User], None]
) -> None:
    others_session = Session.objects.create(owner=bob)
    with open_api_client(live.url, user) as mine, open_api_client(live.url, bob) as others:
        stream = OpenStream(mine, "GET", f"/sessions/{session.pk}/events")
        others_stream = OpenStream(others, "GET", f"/sessions/{others_session.pk}/events")
        act(user)
        assert stream.has_ended.wait(60)
        assert mine.get(f"/sessions/{session.pk}/events").status_code == 401
        others.patch(f"/sessions/{others_session.pk}", json={"title": "Still here"})
        wait_until(lambda: "event: session.updated" in others_stream.lines)
        assert not others_stream.has_ended.is_set()
        revoke(bob)
        assert others_stream.has_ended.wait(60)


@pytest.mark.parametrize("act", [log_out, let_expire, deactivate, change_password])
def test_a_browsers_stream_ends(
    browser: httpx2.Client, user: User, session: Session, act: Callable[[User], None]
) -> None:
    stream = OpenStream(browser, "GET", f"/sessions/{session.pk}/events")
    act(user)
    assert stream.has_ended.wait(60)
    assert browser.get(f"/sessions/{session.pk}/events").status_code == 401


@pytest.mark.parametrize("has_memory", [True, False])
def test_a_completion_that_is_being_written_ends(
    live: Live, user: User, session: Session, scripted: ScriptedModel, has_memory: bool
) -> None:
    scripted.script(Reply(text="One two three four five six", cut_after=2, hang=True))
    body = {"stream": True, "messages": [{"role": "user", "content": "Count."}]}
    headers = {"X-Session-Id": str(session.pk)} if has_memory else {}
    with open_api_client(live.url, user) as client:
        stream = OpenStream(
            client, "POST", f"{live.url}/v1/chat/completions", json=body, headers=headers
        )
        revoke(user)
        assert stream.has_ended.wait(60)
    assert "data: [DONE]" not in stream.lines


def test_a_websocket_is_closed(live: Live, user: User) -> None:
    _, token = AuthToken.objects.create(user)
    address = f"{live.url.replace('http', 'ws', 1)}/v1/responses"
    headers = {"Authorization": f"Bearer {token}"}
    with connect(address, additional_headers=headers, proxy=None) as websocket:
        revoke(user)
        with pytest.raises(ConnectionClosed) as closed:
            websocket.recv(timeout=60)
    assert closed.value.rcvd
    assert closed.value.rcvd.code == 1008


def test_a_turns_stream_ends_and_the_turn_does_not(
    live: Live, user: User, session: Session, scripted: ScriptedModel
) -> None:
    Provider.objects.update(timeout_seconds=300)  # or the turn would end first on a busy machine
    scripted.script(Reply(text="One two three four five six", cut_after=2, hang=True))
    with open_api_client(live.url, user) as client:
        body = {"content": "Count.", "stream": True}
        stream = OpenStream(client, "POST", f"/sessions/{session.pk}/messages", json=body)
        revoke(user)
        assert stream.has_ended.wait(60)
    assert "event: turn.failed" not in stream.lines
    assert session.turns.get().status == "running"


def test_a_connection_that_cannot_be_given_back_keeps_no_stream_open(
    live: Live, user: User, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_failed = threading.Event()

    def fail() -> None:
        has_failed.set()
        raise RuntimeError("The connection is in use.")

    monkeypatch.setattr(sign_out_watch, "give_back_connection", fail)
    with open_api_client(live.url, user) as client:
        stream = OpenStream(client, "GET", f"/sessions/{session.pk}/events")
        assert has_failed.wait(60)
        revoke(user)
        assert stream.has_ended.wait(60)


def test_many_streams_are_checked_by_a_few_queries(user: User) -> None:
    tokens = [Sender(token_digest=AuthToken.objects.create(user)[0].digest) for _ in range(20)]
    browsers = []
    for _ in range(20):
        client = Client()
        client.force_login(user)
        browsers.append(Sender(session_key=client.cookies[settings.SESSION_COOKIE_NAME].value))
    strangers = [Sender(token_digest="none"), Sender(session_key="none")]
    with CaptureQueriesContext(connection) as queries:
        signed_in = find_signed_in([*tokens, *browsers, *strangers])
    assert signed_in == {*tokens, *browsers}
    assert len(queries) == 3


def test_the_thread_that_watches_closes_its_connection_when_nothing_is_open(
    live: Live, user: User
) -> None:
    watching: list[BaseDatabaseWrapper] = []

    def note_watching(*, connection: BaseDatabaseWrapper, **_: object) -> None:
        if threading.current_thread().name == "sign-out-watch":
            watching.append(connection)

    connection_created.connect(note_watching)
    try:
        session = Session.objects.create(owner=user)
        with (
            open_api_client(live.url, user) as client,
            client.stream("GET", f"/sessions/{session.pk}/events") as response,
        ):
            assert response.status_code == 200
            wait_until(lambda: watching, what="a look at who is signed in")
    finally:
        connection_created.disconnect(note_watching)
    wait_until(lambda: watching[-1].connection is None, what="its connection to close")

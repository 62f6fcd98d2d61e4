"""Idempotency-Key: what a repeated request creates once, and how its answer says so."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone
from knox.models import AuthToken
from rest_framework.response import Response
from rest_framework.test import APIClient

from chatcore.api import forks, idempotency, transfer
from chatcore.contrib.webhooks.models import Webhook
from chatcore.models import IdempotencyKey, Message, Project, Session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.statements import note_statements
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
MESSAGES = {"messages": [{"role": "user", "content": "Hi"}]}
REPLAYED = "Idempotency-Replayed"


def with_key(key: str = "k1") -> dict[str, str]:
    return {"Idempotency-Key": key}


@pytest.fixture
def exported(api: APIClient, session: Session) -> dict[str, Any]:
    api.post(f"/api/v1/sessions/{session.pk}/messages/import", MESSAGES)
    document: dict[str, Any] = api.get(f"/api/v1/sessions/{session.pk}/export").json()
    return document


@pytest.fixture
def requests(session: Session, exported: dict[str, Any]) -> dict[str, tuple[str, Any, Any]]:
    """Each with its address, its body, and what counts the rows that it creates."""
    message = Message.objects.filter(session=session).first()
    assert message
    place = f"/api/v1/sessions/{session.pk}"
    return {
        "session": ("/api/v1/sessions", {"title": "Tea"}, Session.objects.count),
        "project": ("/api/v1/projects", {"name": "Tea"}, Project.objects.count),
        "webhook": ("/api/v1/webhooks", {"url": "https://example.com/"}, Webhook.objects.count),
        "token": ("/api/v1/tokens", {"name": "cron"}, AuthToken.objects.count),
        "fork": (f"/api/v1/messages/{message.pk}/fork", None, Session.objects.count),
        "messages": (f"{place}/messages/import", MESSAGES, Message.objects.count),
        "import": ("/api/v1/sessions/import", exported, Session.objects.count),
    }


@pytest.mark.parametrize(
    "name", ["session", "project", "webhook", "token", "fork", "messages", "import"]
)
def test_the_same_key_creates_once_and_answers_the_same(
    api: APIClient, requests: dict[str, tuple[str, Any, Any]], name: str
) -> None:
    address, body, count = requests[name]
    before = count()
    first = api.post(address, body, headers=with_key())
    assert (first.status_code, first.has_header(REPLAYED)) == (201, False)
    with note_statements() as statements:
        second = api.post(address, body, headers=with_key())
    assert statements.errors == []
    assert (second.status_code, second[REPLAYED]) == (201, "true")
    assert second.json() == first.json()
    assert second.get("Location") == first.get("Location")
    assert count() == before + 1
    assert api.post(address, body, headers=with_key("k2")).json() != first.json() or (
        name == "messages"
    )


def test_another_body_or_address_under_the_key_is_422(api: APIClient, session: Session) -> None:
    api.post("/api/v1/sessions", {"title": "Tea"}, headers=with_key())
    for address, body in (
        ("/api/v1/sessions", {"title": "Coffee"}),
        (f"/api/v1/sessions/{session.pk}/messages/import", MESSAGES),
    ):
        refusal = api.post(address, body, headers=with_key())
        assert (refusal.status_code, refusal.json()["type"]) == (422, "idempotency_key_reused")


def test_a_key_is_its_owners_own(api: APIClient, as_user: Callable[[User], APIClient]) -> None:
    mine = api.post("/api/v1/sessions", {}, headers=with_key()).json()
    other = as_user(User.objects.create_user("bob")).post(
        "/api/v1/sessions", {}, headers=with_key()
    )
    assert other.status_code == 201
    assert other.json()["id"] != mine["id"]


def test_what_is_refused_can_be_sent_again_with_the_key(api: APIClient, session: Session) -> None:
    place = f"/api/v1/sessions/{session.pk}/messages/import"
    for address, wrong, right in (
        ("/api/v1/sessions", {"title": 5}, {"title": "5"}),
        (place, {"messages": [{"role": "user"}, 7]}, MESSAGES),
    ):
        key = with_key(str(uuid.uuid4()))
        assert api.post(address, wrong, headers=key).status_code == 400
        answer = api.post(address, right, headers=key)
        assert (answer.status_code, answer.has_header(REPLAYED)) == (201, False)


def test_while_the_first_one_runs_the_second_is_409(
    api: APIClient, user: User, session: Session
) -> None:
    first = api.post("/api/v1/sessions", {"title": "Tea"}, headers=with_key())
    IdempotencyKey.objects.update(status=None)
    refusal = api.post("/api/v1/sessions", {"title": "Tea"}, headers=with_key())
    assert (refusal.status_code, refusal.json()["type"]) == (409, "request_running")
    assert refusal["Retry-After"] == "2"
    # Its process is dead.
    IdempotencyKey.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    again = api.post("/api/v1/sessions", {"title": "Tea"}, headers=with_key())
    assert again.json()["id"] != first.json()["id"]


@pytest.mark.parametrize("name", ["fork", "messages", "import"])
def test_what_a_process_has_shown_before_it_died_is_not_created_again(
    api: APIClient,
    requests: dict[str, tuple[str, Any, Any]],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, body, count = requests[name]
    before = count()

    class Died(Exception):
        """The process ended after the last commit of the creation."""

    def die(*_: object, **__: object) -> None:
        raise Died

    with monkeypatch.context() as patched:
        for module in (forks, transfer):
            patched.setattr(module, "Response", die, raising=False)
            patched.setattr(module, "build_created_response", die)
        assert api.post(address, body, headers=with_key()).status_code == 500
    assert count() == before + 1
    again = api.post(address, body, headers=with_key())
    assert (again.status_code, again[REPLAYED]) == (201, "true")
    assert count() == before + 1


@pytest.mark.parametrize("name", ["fork", "messages", "import"])
def test_a_request_that_lost_its_claim_creates_nothing(
    api: APIClient,
    requests: dict[str, tuple[str, Any, Any]],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, body, count = requests[name]
    before = count()
    real_settle = idempotency.settle

    def lose_and_settle(*args: Any, **kwargs: Any) -> None:
        IdempotencyKey.objects.all().delete()  # as another request does when the lease is over
        real_settle(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(idempotency, "settle", lose_and_settle)
        answer = api.post(address, body, headers=with_key())
    assert (answer.status_code, answer.json()["type"]) == (503, "writing_interrupted")
    assert count() == before


def test_a_claim_is_renewed_while_its_request_lives(
    api: APIClient,
    requests: dict[str, tuple[str, Any, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, body, _ = requests["import"]
    monkeypatch.setattr(idempotency, "RENEWAL_SECONDS", 0.01)
    real_import = transfer.importer.import_session

    def import_slowly(*args: Any, **kwargs: Any) -> Any:
        IdempotencyKey.objects.update(lease_until=timezone.now())
        wait_until(
            lambda: IdempotencyKey.objects.filter(lease_until__gt=timezone.now()).exists(),
            what="the renewal of the claim",
        )
        return real_import(*args, **kwargs)

    monkeypatch.setattr(transfer.importer, "import_session", import_slowly)
    assert api.post(address, body, headers=with_key()).status_code == 201


def test_keys_are_forgotten_after_a_day_and_with_what_they_created(api: APIClient) -> None:
    made = api.post("/api/v1/sessions", {}, headers=with_key())
    api.delete(made["Location"])
    assert api.post("/api/v1/sessions", {}, headers=with_key()).status_code == 404
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert api.post("/api/v1/sessions", {}, headers=with_key()).status_code == 201


def test_old_keys_are_deleted_without_another_request(api: APIClient) -> None:
    for key in ("old", "new"):
        api.post("/api/v1/sessions", {}, headers=with_key(key))
    IdempotencyKey.objects.filter(key="old").update(created_at=timezone.now() - timedelta(hours=25))
    assert idempotency.delete_old_keys() == 1
    assert IdempotencyKey.objects.get().key == "new"


def test_no_secret_is_stored_in_clear(api: APIClient) -> None:
    token = api.post("/api/v1/tokens", {}, headers=with_key()).json()["token"]
    assert token not in IdempotencyKey.objects.get().body


def test_of_the_same_request_twice_at_once_one_creates(api: APIClient) -> None:
    def create(_: int) -> Response:
        try:
            return api.post("/api/v1/sessions", {"title": "Tea"}, headers=with_key())
        finally:
            connections.close_all()

    with note_statements() as statements, ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(create, range(4)))
    assert statements.errors == []
    assert {answer.status_code for answer in answers} == {201}
    assert Session.objects.count() == 1
    assert sum(answer.has_header(REPLAYED) for answer in answers) == 3


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_key_of_the_wrong_length_is_refused(api: APIClient, key: str) -> None:
    refusal = api.post("/api/v1/sessions", {}, headers=with_key(key))
    assert refusal.json()["errors"][0]["field"] == "Idempotency-Key"


@pytest.mark.parametrize("how", [{}, {"Prefer": "respond-async"}, {"Accept": "text/event-stream"}])
def test_a_repeated_message_says_so(
    api: APIClient, session: Session, scripted: ScriptedModel, how: dict[str, str]
) -> None:
    scripted.default = Reply(text="Hello.", usage=(10, 2))
    address = f"/api/v1/sessions/{session.pk}/messages"
    first = api.post(address, {"content": "Hi"}, headers=with_key())
    assert not first.has_header(REPLAYED)
    again = api.post(address, {"content": "Hi"}, headers={**with_key(), **how})
    assert again[REPLAYED] == "true"
    assert len(scripted.requests) == 1

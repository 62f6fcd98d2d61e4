"""If-Match with the ETag of what is shown: changed in that state, or not at all."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from rest_framework.response import Response
from rest_framework.test import APIClient

from chatcore.models import Session

pytestmark = pytest.mark.django_db


def find_session(api: APIClient, session: Session) -> tuple[str, dict[str, object]]:
    return f"/api/v1/sessions/{session.pk}", {"title": "Tea"}


def create_webhook(api: APIClient, session: Session) -> tuple[str, dict[str, object]]:
    made = api.post("/api/v1/webhooks", {"url": "https://example.com/"}).json()
    return f"/api/v1/webhooks/{made['id']}", {"is_active": False}


def create_line(api: APIClient, session: Session) -> tuple[str, dict[str, object]]:
    Session.objects.update(policy="chatcore")
    place = f"/api/v1/sessions/{session.pk}/ledger"
    made = api.post(place, {"kind": "rule", "text": "No sugar."}).json()
    return f"{place}/{made['id']}", {"text": "Little sugar."}


def create_rule(api: APIClient, session: Session) -> tuple[str, dict[str, object]]:
    made = api.post("/api/v1/rules", {"text": "No sugar."}).json()
    return f"/api/v1/rules/{made['id']}", {"text": "Little sugar."}


def create_project(api: APIClient, session: Session) -> tuple[str, dict[str, object]]:
    made = api.post("/api/v1/projects", {"name": "Tea"}).json()
    return f"/api/v1/projects/{made['id']}", {"rules": ["No sugar."]}


def find_state(api: APIClient, session: Session) -> tuple[str, dict[str, object]]:
    return f"/api/v1/sessions/{session.pk}/state", {"state": {"tasks": ["Buy tea."]}}


CREATORS = [find_session, create_webhook, create_line, create_rule, create_project, find_state]
Creator = Callable[[APIClient, Session], tuple[str, dict[str, object]]]
resource = pytest.mark.parametrize("create", CREATORS, ids=lambda create: create.__name__)


@resource
def test_a_change_is_made_in_the_state_that_was_read_only(
    api: APIClient, session: Session, create: Creator
) -> None:
    address, change = create(api, session)
    seen = api.get(address)["ETag"]
    made = api.patch(address, change, headers={"If-Match": seen})
    assert (made.status_code, made["ETag"]) == (200, api.get(address)["ETag"])
    assert made["ETag"] != seen
    refusal = api.patch(address, change, headers={"If-Match": seen})
    assert (refusal.status_code, refusal.json()["type"]) == (412, "changed")
    assert refusal.json()["etag"] == made["ETag"]
    assert refusal["Content-Type"] == "application/problem+json"
    assert api.patch(address, change, headers={"If-Match": "*"}).status_code == 200
    assert api.patch(address, change).status_code == 200


@pytest.mark.parametrize("create", CREATORS[:4], ids=lambda create: create.__name__)
def test_so_is_a_deletion(api: APIClient, session: Session, create: Creator) -> None:
    address, change = create(api, session)
    seen = api.get(address)["ETag"]
    api.patch(address, change)
    for other in (seen, '"0"', "", "one"):
        assert api.delete(address, headers={"If-Match": other}).status_code == 412
    current = api.get(address)["ETag"]
    assert api.delete(address, headers={"If-Match": f'"other", {current}'}).status_code == 204
    assert api.get(address).status_code == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("create", [find_session, create_webhook, create_rule])
def test_of_changes_at_once_over_one_state_exactly_one_is_made(
    api: APIClient, session: Session, create: Creator
) -> None:
    address, _ = create(api, session)
    name = {"find_session": "title", "create_webhook": "url", "create_rule": "text"}
    seen = api.get(address)["ETag"]

    def change(number: int) -> Response:
        try:
            value = f"https://example.com/{number}"
            return api.patch(address, {name[create.__name__]: value}, headers={"If-Match": seen})
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        assert sorted(answer.status_code for answer in pool.map(change, range(3))) == [
            200,
            412,
            412,
        ]


def test_what_is_created_says_its_state(api: APIClient) -> None:
    made = api.post("/api/v1/sessions", {"title": "Tea"})
    assert made["ETag"] == api.get(made["Location"])["ETag"]
    made = api.post("/api/v1/webhooks", {"url": "https://example.com/"})
    assert made["ETag"] == api.get(f"/api/v1/webhooks/{made.json()['id']}")["ETag"]

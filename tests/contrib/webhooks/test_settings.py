"""Webhooks over REST: their secrets, their fields, and whose they are."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.contrib.webhooks.models import Webhook

HOOKS = "/api/v1/webhooks"
pytestmark = pytest.mark.django_db
UNREACHABLE_ADDRESSES = [
    "https://example.com:8345/",
    "http://127.0.0.1/",
    "http://localhost/",
    "http://[::1]/",
    "http://127.1/",
    "http://2130706433/",
    "http://10.0.0.7/",
    "http://169.254.169.254/latest/meta-data/",
    "http://db/",
    "http://printer.local/",
    "http://metadata.google.internal/",
]


def test_the_secret_is_shown_once_and_kept_encrypted(api: APIClient) -> None:
    made = api.post(HOOKS, {"url": "https://example.com/"}).json()
    assert made["secret"].startswith("whsec_")
    assert made["secret"] not in Webhook.objects.get().secret
    for address in (HOOKS, f"{HOOKS}/{made['id']}"):
        assert "secret" not in api.get(address).content.decode()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "url"),
        ({"url": "ftp://example.com"}, "url"),
        ({"url": "https://user:pw@example.com"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": "https://7.example.com*"}, "url"),
        ({"url": 5}, "url"),
        *(({"url": address}, "url") for address in UNREACHABLE_ADDRESSES),
        ({"url": "https://example.com", "events": ["message.delta"]}, "events"),
        ({"url": "https://example.com", "secret": "mine"}, "secret"),
    ],
)
def test_a_wrong_address_is_refused_by_its_field(
    api: APIClient, body: dict[str, Any], field: str
) -> None:
    answer = api.post(HOOKS, body)
    assert answer.status_code == 400
    assert [error["field"].partition("[")[0] for error in answer.json()["errors"]] == [field]


def test_an_address_that_the_operator_allows_is_taken(
    api: APIClient, settings: LazySettings
) -> None:
    allowed_hosts = ["127.0.0.1:8345", "hooks.internal"]
    settings.CHATCORE = {**settings.CHATCORE, "FETCH_ALLOW_HOSTS": allowed_hosts}
    for address in ("http://127.0.0.1:8345/hook", "https://hooks.internal/", "https://8.8.8.8/"):
        assert api.post(HOOKS, {"url": address}).status_code == 201, address
    assert api.post(HOOKS, {"url": "http://127.0.0.1/"}).status_code == 400
    made = api.get(HOOKS).json()["results"][0]
    moved = api.patch(f"{HOOKS}/{made['id']}", {"url": "http://127.0.0.1:9/"})
    assert (moved.status_code, moved.json()["errors"][0]["field"]) == (400, "url")


def test_what_is_anothers_is_not_there(
    api: APIClient, as_user: Callable[[User], APIClient]
) -> None:
    made = api.post(HOOKS, {"url": "https://example.com/"}).json()
    other = as_user(User.objects.create_user("bob"))
    for address in (
        f"{HOOKS}/{made['id']}",
        f"{HOOKS}/{made['id']}/deliveries",
        f"{HOOKS}/{uuid.uuid4()}",
    ):
        assert other.get(address).status_code == 404
    assert other.patch(f"{HOOKS}/{made['id']}", {"is_active": False}).status_code == 404
    assert other.delete(f"{HOOKS}/{made['id']}").status_code == 404

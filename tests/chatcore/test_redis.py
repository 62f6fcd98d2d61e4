"""Limits, sign-in links and health work the same with a real Redis (CHATCORE_REDIS_URL)."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis as redis_client
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.web import sign_in
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True)]
URL = os.environ.get("CHATCORE_TEST_REDIS_URL", "redis://127.0.0.1:6379/15")
NOBODY = "redis://127.0.0.1:1/0"


@pytest.fixture
def redis(settings: Any) -> Iterator[None]:
    """The cache as settings.py makes it from a Redis address, under keys of this process's own."""
    try:
        redis_client.Redis.from_url(URL, socket_connect_timeout=2).ping()
    except redis_client.RedisError:
        pytest.skip(f"NO REDIS ANSWERS at {URL}; set CHATCORE_TEST_REDIS_URL")
    backend = "django.core.cache.backends.redis.RedisCache"
    settings.CACHES = {
        "default": {
            "BACKEND": backend,
            "LOCATION": URL,
            "KEY_PREFIX": f"chatcore-{os.getpid()}-{time.time_ns()}",
        }
    }
    yield
    cache.clear()


def test_turns_a_minute_are_counted(
    redis: None, api: APIClient, session: Session, settings: Any, scripted: ScriptedModel
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 1}
    scripted.default = Reply(text="Yes.")
    statuses = [
        api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"}).status_code
        for _ in range(2)
    ]
    assert statuses == [201, 429]


def test_a_sign_in_link_works_once(redis: None, user: User) -> None:
    token = sign_in.issue_token(user)
    assert [sign_in.redeem_token(token), sign_in.redeem_token(token)] == [user, None]


def test_health_names_a_cache_that_is_away(redis: None, client: Client, settings: Any) -> None:
    report = client.get("/readyz").json()
    assert (report["status"], report["missing"]) == ("ok", [])
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": NOBODY}}
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["missing"]) == (200, [])
    assert any("cache" in warning for warning in answer.json()["warnings"])
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": URL}}

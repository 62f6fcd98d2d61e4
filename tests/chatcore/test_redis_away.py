"""Redis is named and away: turns go on, limits count in the process, and nobody waits for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from redis.exceptions import RedisError
from rest_framework.test import APIClient

from chatcore.base import caches
from chatcore.models import Session
from chatcore.web import sign_in
from tests.support.redis_server import RedisServer
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.redis,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not RedisServer.is_installed(), reason="there is no redis-server"),
]


@pytest.fixture
def server(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """A server that the cache of the settings uses, and a breaker that tries again soon."""
    monkeypatch.setattr(caches, "PAUSE_SECONDS", 0.3)
    with RedisServer(tmp_path) as server:
        settings.CACHES = {
            "default": {
                "BACKEND": "chatcore.base.caches.ResilientRedisCache",
                "LOCATION": server.url,
            }
        }
        yield server


def send(api: APIClient, session: Session) -> Any:
    return api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"})


def test_the_settings_name_this_cache_for_a_redis_address() -> None:
    from chatcore import settings

    assert settings.REDIS_CACHE["BACKEND"] == "chatcore.base.caches.ResilientRedisCache"


def test_messages_are_answered_and_the_limit_counts_in_the_process(
    server: RedisServer,
    api: APIClient,
    session: Session,
    settings: Any,
    scripted: ScriptedModel,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 2}
    scripted.default = Reply(text="Yes.")
    assert send(api, session).status_code == 201
    server.kill()
    assert [send(api, session).status_code for _ in range(3)] == [201, 201, 429]
    assert caplog.text.count("Redis is away") == 1


def test_it_is_used_again_when_it_is_back(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.kill()
    cache.set("one", "in memory")
    assert cache.get("one") == "in memory"
    server.start()
    wait_until(lambda: cache.get("one") is None, what="Redis in use")
    cache.set("two", "in Redis")
    assert cache.get("two") == "in Redis"
    assert caplog.text.count("Redis is back") == 1


def test_a_server_that_does_not_answer_is_asked_by_one_caller_only(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "PAUSE_SECONDS", 60)
    attempts: list[str] = []
    original = caches.RedisCache.get

    def count_attempt(redis: Any, key: str, *args: Any) -> Any:
        attempts.append(key)
        return original(redis, key, *args)

    monkeypatch.setattr(caches.RedisCache, "get", count_attempt)
    server.pause()
    assert [cache.get("anything") for _ in range(20)] == [None] * 20
    assert len(attempts) == 1


def test_readiness_warns_of_the_cache_while_it_is_away(server: RedisServer, client: Client) -> None:
    def warns() -> bool:
        answer = client.get("/readyz")
        assert answer.status_code == 200
        return any("cache" in warning for warning in answer.json()["warnings"])

    assert not warns()
    server.kill()
    assert warns()
    server.start()
    wait_until(lambda: not warns(), what="the end of the warning")


def test_a_sign_in_link_is_not_kept_where_no_other_process_finds_it(
    server: RedisServer, user: User
) -> None:
    token = sign_in.issue_token(user)
    server.kill()
    refusal = Client(raise_request_exception=False).get(f"/login/once/{token}/")
    assert (refusal.status_code, refusal["Retry-After"]) == (503, "5")
    with pytest.raises(RedisError):
        sign_in.issue_token(user)


def test_a_connection_that_breaks_while_it_is_used_goes_on_in_memory(server: RedisServer) -> None:
    cache.set("one", "in Redis")
    pair = caches._get_pair(server.url, {})
    client = pair.redis._cache.get_client()
    connection = client.connection_pool.get_connection()
    connection._parser._buffer._buffer.close()  # as another thread does, which disconnects
    client.connection_pool.release(connection)
    cache.set("two", "in memory")
    assert pair.breaker.is_away
    assert cache.get("two") == "in memory"
    with pytest.raises(ValueError, match="not found"):
        cache.incr("none")

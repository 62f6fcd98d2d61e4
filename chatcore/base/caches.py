"""A cache in Redis that goes on in the memory of the process while Redis is away."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

# Seconds. A Redis server answers in less than a millisecond; one that does not costs a request this
# time once, and then nobody asks it for PAUSE_SECONDS.
CONNECT_SECONDS = 0.5
ANSWER_SECONDS = 0.5
PAUSE_SECONDS = 5.0
# Of the errors that the client raises when another thread has closed its connection meanwhile.
CLOSED_WORDS = ("closed file", "file descriptor", "'NoneType' object has no attribute")


@contextmanager
def unify_redis_errors() -> Iterator[None]:
    """Raise RedisError for every way in which a server that goes away shows itself.

    The client translates most errors of its sockets, but not those of one that breaks while a
    command is written or that another thread closes.
    """
    try:
        yield
    except OSError as error:
        raise RedisConnectionError(str(error)) from error
    except (ValueError, AttributeError) as error:
        if not any(words in str(error) for words in CLOSED_WORDS):
            raise
        raise RedisConnectionError(str(error)) from error


class Breaker:
    """Remembers that a server is away, so that only one caller in a while asks it again.

    The log has the line `away`, with the reason in place of its %s, when the server goes, and the
    line `back` when it answers again.
    """

    def __init__(self, away: str, back: str) -> None:
        self.is_away = False
        self._away = away
        self._back = back
        self._next_try = 0.0
        self._lock = threading.Lock()

    def allows_try(self) -> bool:
        """Return True if the caller may ask the server."""
        with self._lock:
            if self.is_away and time.monotonic() < self._next_try:
                return False
            # While one caller tries, the others do not wait with it.
            self._next_try = time.monotonic() + PAUSE_SECONDS
            return True

    def note_failure(self, error: Exception) -> None:
        """Open the breaker; log the reason unless it was open."""
        with self._lock:
            was_away, self.is_away = self.is_away, True
            self._next_try = time.monotonic() + PAUSE_SECONDS
        if not was_away:
            logger.warning(self._away, error)

    def note_success(self) -> None:
        """Close the breaker; log it if it was open."""
        with self._lock:
            was_away, self.is_away = self.is_away, False
        if was_away:
            logger.warning(self._back)


class CachePair:
    """A cache in Redis, and one in memory for the time while Redis is away.

    What is in one of them is not in the other: a limit then counts for each process, from zero.
    """

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        options = {"socket_connect_timeout": CONNECT_SECONDS, "socket_timeout": ANSWER_SECONDS}
        options |= params.get("OPTIONS", {})
        self.breaker = Breaker(
            "Redis is away (%s); this process keeps its cache in memory meanwhile", "Redis is back"
        )
        self.redis = RedisCache(server, {**params, "OPTIONS": options})
        self._memory = LocMemCache(f"in place of {server}", {})

    def run(self, name: str, *args: object) -> Any:
        """Call the method of the cache that can be asked now."""
        if self.breaker.allows_try():
            try:
                with unify_redis_errors():
                    result = getattr(self.redis, name)(*args)
            except RedisError as error:
                self.breaker.note_failure(error)
            else:
                self.breaker.note_success()
                return result
        return getattr(self._memory, name)(*args)


class ResilientRedisCache(BaseCache):
    """Django's cache in Redis, which goes on in memory while Redis is away.

    All threads share one pair with its connections, and with what it knows of the server.
    """

    def __init__(self, server: str, params: dict[str, object]) -> None:
        super().__init__(params)
        self._pair = _get_pair(server, params)

    def add(
        self, key: str, value: object, timeout: object = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        return bool(self._pair.run("add", key, value, timeout, version))

    def get(self, key: str, default: object = None, version: int | None = None) -> Any:
        return self._pair.run("get", key, default, version)

    def set(
        self, key: str, value: object, timeout: object = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        self._pair.run("set", key, value, timeout, version)

    def touch(
        self, key: str, timeout: object = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        return bool(self._pair.run("touch", key, timeout, version))

    def delete(self, key: str, version: int | None = None) -> bool:
        return bool(self._pair.run("delete", key, version))

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        return int(self._pair.run("incr", key, delta, version))

    def clear(self) -> None:
        self._pair.run("clear")

    @property
    def is_away(self) -> bool:
        """Return True if Redis did not answer when it was asked last."""
        return self._pair.breaker.is_away

    def require_server(self) -> None:
        """Raise RedisError if Redis does not answer, for what must not be in one process only."""
        with unify_redis_errors():
            self._pair.redis.get("anybody-there")


_pairs: dict[str, CachePair] = {}


def _get_pair(server: str, params: dict[str, object]) -> CachePair:
    key = repr((server, sorted(params.items())))
    if key not in _pairs:
        _pairs.setdefault(key, CachePair(server, params))
    return _pairs[key]

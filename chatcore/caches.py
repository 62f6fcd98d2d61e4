"""A cache in Redis that goes on in the memory of the process while Redis is away."""

import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

# Seconds. A Redis server answers in less than a millisecond; one that does not costs a request this
# time once, and then nobody asks it for PAUSE_SECONDS.
CONNECT_SECONDS = 0.5
ANSWER_SECONDS = 0.5
PAUSE_SECONDS = 5.0


class Breaker:
    """Remembers that a server is away, so that only one caller in a while asks it again."""

    def __init__(self) -> None:
        self.is_away = False
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
            logger.warning(
                "Redis is away (%s); this process keeps its cache in memory meanwhile", error
            )

    def note_success(self) -> None:
        """Close the breaker; log it if it was open."""
        with self._lock:
            was_away, self.is_away = self.is_away, False
        if was_away:
            logger.warning("Redis is back")


class ResilientClient:
    """The client of Django's Redis cache, and a cache in memory with the same methods.

    What is in one of them is not in the other: a limit then counts for each process, from zero.
    """

    def __init__(self, servers: Sequence[str], **options: Any) -> None:
        timeouts = {
            "socket_connect_timeout": CONNECT_SECONDS,
            "socket_timeout": ANSWER_SECONDS,
        }
        self.breaker = Breaker()
        self._redis = RedisCacheClient(list(servers), **timeouts | options)
        self._memory = LocMemCache(f"in place of {servers}", {})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return functools.partial(self._run, name)

    def ping(self) -> None:
        """Ask Redis itself. Raises RedisError."""
        self._redis.get_client(None, write=True).ping()

    def _run(self, name: str, *args: Any) -> Any:
        if self.breaker.allows_try():
            try:
                result = getattr(self._redis, name)(*args)
            except RedisError as error:
                self.breaker.note_failure(error)
            else:
                self.breaker.note_success()
                return result
        return getattr(self._memory, name)(*args)


class ResilientRedisCache(RedisCache):
    """Django's cache in Redis, which goes on in memory while Redis is away.

    All threads share one client with its connections, and with what it knows of the server.
    """

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._client = _get_client(
            tuple(self._servers),  # type: ignore[attr-defined]
            **self._options,  # type: ignore[attr-defined]
        )

    @property
    def _cache(self) -> Any:
        return self._client

    @property
    def is_away(self) -> bool:
        """Return True if Redis did not answer when it was asked last."""
        return self._client.breaker.is_away

    def require_server(self) -> None:
        """Raise RedisError if Redis does not answer, for what must not be in one process only."""
        self._client.ping()


_clients: dict[str, ResilientClient] = {}


def _get_client(servers: tuple[str, ...], **options: Any) -> ResilientClient:
    key = repr((servers, sorted(options.items())))
    return _clients.setdefault(key, ResilientClient(servers, **options))

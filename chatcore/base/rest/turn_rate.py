"""The limits of turns and of compactions by hand that a user may start a minute.

Results of a client's tools start no turn, they continue one. A coding program runs a tool every 300
ms and has several agents at once, so these have a limit of their own, ROUNDS_PER_TURN times that of
turns. It ends a program that calls a tool for ever, and whoever wants to get around the other one.

The count is in the cache, which all web processes share. Without Redis the cache is a table, and to
write it is a durable commit of its own. So a process counts the first few turns of a user in its
memory, and tells the cache of them with the next one.
"""

import functools
import threading
import time
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db import transaction

from chatcore.base.rest.problems import Problem

WINDOW_SECONDS = 60.0
# The part of the limit that a process counts in memory. With several processes, a user may so start
# more turns than the limit: this part more for each of them but one.
MEMORY_SHARE = 0.1
ROUNDS_PER_TURN = 10
MAX_USERS = 10_000  # of whom a process remembers something


class RateWindow:
    """The turns, rounds or compactions of one user in the last minute, as this process knows them.

    `shared_times` are in the cache, of all processes; `new_times` are not yet.
    """

    def __init__(self, kind: str, user_pk: Any) -> None:
        self.cache_key = f"{kind}_times_{user_pk}"
        self.user_pk = user_pk
        self.lock = threading.Lock()
        self.shared_times: list[float] = []
        self.new_times: list[float] = []

    def count_one(self, limit: int) -> float | None:
        """Count one more, or return the seconds to wait until it is allowed."""
        now = time.time()
        with self.lock:
            self.shared_times = _select_recent(self.shared_times, now)
            self.new_times = _select_recent(self.new_times, now)
            known_count = len(self.shared_times) + len(self.new_times)
            if known_count < limit and len(self.new_times) < int(limit * MEMORY_SHARE):
                self.new_times.append(now)
                return None
            untold_times, self.new_times = self.new_times, []
            self.shared_times = [*self.shared_times, *untold_times]
        # Not under the lock, for which no thread waits with a connection in hand, or for one.
        return self._count_in_cache(limit, now, untold_times)

    def describe(self, limit: int) -> tuple[int, float]:
        """Return how many more are allowed now, and the seconds until all of `limit` are again."""
        now = time.time()
        with self.lock:
            times = _select_recent([*self.shared_times, *self.new_times], now)
        seconds = max(times) + WINDOW_SECONDS - now if times else 0.0
        return max(0, limit - len(times)), seconds

    def _count_in_cache(
        self, limit: int, now: float, untold_times: Sequence[float]
    ) -> float | None:
        # The cache is read and then written, so two requests at once could lose a count. The lock
        # on the user's row lets the requests of one user pass one after the other.
        with transaction.atomic():
            get_user_model().objects.select_for_update(no_key=True).get(pk=self.user_pk)
            told_times = _select_recent(cache.get(self.cache_key, []), now)
            times = sorted([*told_times, *untold_times])
            is_allowed = len(times) < limit
            if is_allowed:
                times.append(now)
            if is_allowed or untold_times:
                cache.set(self.cache_key, times, WINDOW_SECONDS)
        with self.lock:
            self.shared_times = times
        return None if is_allowed else times[len(times) - limit] + WINDOW_SECONDS - now


def count_turn(request: Any, *, has_results: bool = False) -> None:
    """Count a turn that the user is about to start, or to continue with results of tools.

    Raises the 429 problem with the seconds to wait if there were too many in the last minute.
    """
    kind, what, limit = "turn", "turns", settings.CHATCORE["TURNS_PER_MINUTE"]
    if has_results:
        kind, what, limit = "round", "rounds of results of tools", limit * ROUNDS_PER_TURN
    wait_seconds = _get_window(kind, request.user.pk).count_one(limit)
    if wait_seconds is not None:
        detail = f"No more than {limit} {what} a minute."
        raise Problem(429, "too_many_turns", detail, retry_after=wait_seconds)


def describe_turns(user_pk: object) -> tuple[int, int, float]:
    """Return the user's turns a minute, how many are left, and the seconds until all are again."""
    limit = settings.CHATCORE["TURNS_PER_MINUTE"]
    return limit, *_get_window("turn", user_pk).describe(limit)


def build_turn_headers(user_pk: object) -> dict[str, str]:
    """Return OpenAI's headers about the turns that the user may still start this minute."""
    limit, remaining, seconds = describe_turns(user_pk)
    return {
        "X-RateLimit-Limit-Requests": str(limit),
        "X-RateLimit-Remaining-Requests": str(remaining),
        "X-RateLimit-Reset-Requests": f"{seconds:.1f}s",
    }


def count_compaction(user_pk: object) -> float | None:
    """Count a compaction that a user asks for by hand.

    Returns the seconds to wait if there were too many in the last minute.
    """
    return _get_window("compaction", user_pk).count_one(settings.CHATCORE["COMPACTIONS_PER_MINUTE"])


@functools.lru_cache(MAX_USERS)
def _get_window(kind: str, user_pk: object) -> RateWindow:
    return RateWindow(kind, user_pk)


def forget_turns() -> None:
    """Forget all that this process has counted in its memory."""
    _get_window.cache_clear()


def _select_recent(times: list[float], now: float) -> list[float]:
    return [moment for moment in times if moment > now - WINDOW_SECONDS]

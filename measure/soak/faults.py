"""The faults of the soak: processes killed and stopped, servers restarted, files locked."""

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import redis as redis_client

from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer
from tests.support.served_product import ServedProduct
from tests.support.served_streams import find_web_processes

PAUSE_SECONDS = (6.0, 16.0)  # between two faults
ZOMBIE_SECONDS = 40.0  # longer than the lease of a turn


class Faults(threading.Thread):
    """Does something bad every few seconds until a moment, and counts what it did."""

    def __init__(
        self,
        product: ServedProduct,
        redis: RedisServer | None,
        postgres: PostgresServer | None,
        until: float,
    ) -> None:
        super().__init__(daemon=True)
        self._product = product
        self._redis = redis
        self._postgres = postgres
        self._until = until
        self.counts: Counter[str] = Counter()
        self._is_redis_away = False
        self._acts: list[Callable[[], None]] = [
            self._kill_web_process,
            self._kill_worker_process,
            self._stop_web_process_for_a_while,
        ]
        if redis:
            self._acts += [self._flush_redis, self._restart_redis]
        if postgres:
            self._acts += [self._restart_postgres_fast, self._restart_postgres_at_once]
            self._acts += [self._kill_postgres]
        else:
            self._acts += [self._lock_sqlite]

    def run(self) -> None:
        while time.monotonic() < self._until:
            time.sleep(random.uniform(*PAUSE_SECONDS))
            act = random.choice(self._acts)
            self.counts[act.__name__.strip("_")] += 1
            act()

    def repair(self) -> None:
        """Leave everything as it should be."""
        for pid in find_web_processes(self._product):
            _send(pid, signal.SIGCONT)

    def _kill_web_process(self) -> None:
        pids = find_web_processes(self._product)
        if pids:
            _send(random.choice(pids), signal.SIGKILL)

    def _kill_worker_process(self) -> None:
        pids = [
            pid
            for pid, words in list_processes(self._product.pid)
            if "chatcore worker" in words or "qcluster" in words
        ]
        if pids:
            _send(random.choice(pids), signal.SIGKILL)

    def _stop_web_process_for_a_while(self) -> None:
        """Make a zombie: its leases end, others take its place, then it wakes up."""
        pids = find_web_processes(self._product)
        if pids:
            pid = random.choice(pids)
            _send(pid, signal.SIGSTOP)
            time.sleep(min(ZOMBIE_SECONDS, max(0, self._until - time.monotonic())))
            _send(pid, signal.SIGCONT)

    def _flush_redis(self) -> None:
        assert self._redis
        with contextlib.suppress(redis_client.RedisError):
            redis_client.Redis.from_url(self._redis.url).flushall()

    def _restart_redis(self) -> None:
        assert self._redis
        self._redis.kill()
        time.sleep(random.uniform(0, 6))
        self._redis.start()

    def _restart_postgres_fast(self) -> None:
        assert self._postgres
        self._postgres.stop("fast")
        time.sleep(random.uniform(0, 4))
        self._postgres.start()

    def _restart_postgres_at_once(self) -> None:
        assert self._postgres
        self._postgres.stop("immediate")
        self._postgres.start()

    def _kill_postgres(self) -> None:
        assert self._postgres
        self._postgres.kill()
        self._postgres.start()

    def _lock_sqlite(self) -> None:
        file = Path(self._product.environment["CHATCORE_DATA_DIR"]) / "chatcore.sqlite3"
        other = sqlite3.connect(file, isolation_level=None, timeout=10)
        with contextlib.closing(other), contextlib.suppress(sqlite3.OperationalError):
            other.execute("BEGIN IMMEDIATE")
            time.sleep(random.uniform(0.5, 8))


def list_processes(parent: int) -> list[tuple[int, str]]:
    """Return the living processes below `parent`, with their command lines."""
    found = []
    for process in psutil.Process(parent).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append((process.pid, " ".join(process.cmdline())))
    return found


def list_memory(parent: int) -> dict[str, int]:
    """Return the megabytes of the largest process of each kind."""
    sizes: dict[str, int] = {}
    for pid, words in [(parent, "serve"), *list_processes(parent)]:
        kind = next(
            (name for name in ("web_server", "worker", "qcluster") if name in words), "supervisor"
        )
        with contextlib.suppress(psutil.NoSuchProcess):
            size = psutil.Process(pid).memory_info().rss // 2**20
            sizes[kind] = max(sizes.get(kind, 0), size)
    return sizes


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)

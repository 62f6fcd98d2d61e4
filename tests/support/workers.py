"""A real `chatcore worker` over a real database of its own, and ways to hurt it; for the tests of the job queue."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import environ
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.db.utils import load_backend

from compaction.worker.processes import STATE_ZOMBIE, Process, list_descendants

ROOT = Path(__file__).resolve().parents[2]
SERVER = os.environ.get("CHATCORE_TEST_DATABASE_URL", "postgres://postgres@127.0.0.1:5432/postgres")


def server_answers() -> bool:
    """Whether there is a PostgreSQL to test on."""
    try:
        psycopg.connect(SERVER, connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


KINDS = ("sqlite", "postgres") if server_answers() else ("sqlite",)


def until(true: Callable[[], Any], *, seconds: float, what: str = "") -> float:
    """Wait for something to become true; returns how long it took, in seconds."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {what or true}"
        time.sleep(0.1)
    return time.monotonic() - began


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """A fresh migrated database, which is this test's `default` connection meanwhile; yields its URL."""
    if kind == "sqlite":
        with default_connection(
            f"sqlite:///{folder}/chatcore.sqlite3", transaction_mode="IMMEDIATE", timeout=20
        ) as url:
            yield url
        return
    name = f"chatcore_worker_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(SERVER, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            with default_connection(f"{SERVER.rpartition('/')[0]}/{name}") as url:
                yield url
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def default_connection(url: str, **options: Any) -> Iterator[str]:
    """Let `default` be the database at `url`, in this thread, and make its tables."""
    described = connections.configure_settings(
        {"default": {**environ.Env.db_url_config(url), "OPTIONS": options}}
    )["default"]
    described["TEST"] = connections["default"].settings_dict["TEST"]
    before = connections["default"]
    connections["default"] = load_backend(described["ENGINE"]).DatabaseWrapper(described, "default")
    try:
        call_command("migrate", verbosity=0)
        call_command("createcachetable", verbosity=0)
        yield url
    finally:
        connections["default"].close()
        connections["default"] = before


class Worker:
    """One `chatcore worker` process and all below it."""

    def __init__(self, url: str, folder: Path, *arguments: str) -> None:
        self.log = folder / "worker.log"
        self.arguments = arguments
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "chatcore.settings",
            "CHATCORE_DATA_DIR": str(folder),
            "CHATCORE_DATABASE_URL": url,
            "CHATCORE_SECRET_KEY": settings.SECRET_KEY,
            "CHATCORE_KEY_ENCRYPTION_KEYS": ",".join(settings.CHATCORE["KEY_ENCRYPTION_KEYS"]),
            "CHATCORE_LOG_LEVEL": "INFO",
        }
        self.ever: set[int] = set()
        self.start()

    def start(self) -> None:
        """Start it, as a supervisor would after its death, in a process group of its own."""
        with self.log.open("a") as log:
            command = [sys.executable, str(ROOT / "manage.py"), "worker", *self.arguments]
            self.process = subprocess.Popen(
                command,
                env=self.environment,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(
            lambda: len(self.workers()) >= 2 and self.monitor() and self.pusher(),
            seconds=90,
            what="the cluster's start",
        )

    def members(self) -> list[Process]:
        """All living processes below the command."""
        members = [
            process
            for process in list_descendants(self.process.pid)
            if process.state != STATE_ZOMBIE
        ]
        self.ever |= {process.pid for process in members}
        return members

    def sentinel(self) -> int:
        return next(process.pid for process in self.members() if process.parent == self.process.pid)

    def workers(self, name: str = "jobs-") -> list[int]:
        """Workers whose name in ps starts with `name`: jobs-free, jobs-busy."""
        return [process.pid for process in self.members() if process.name.startswith(name)]

    def monitor(self) -> int | None:
        return next(iter(self._others()), None)

    def pusher(self) -> int | None:
        return next(iter(self._others()[1:]), None)

    def _others(self) -> list[int]:
        """Monitor and pusher, in the order django-q2 starts them."""
        members = self.members()
        if not members:
            return []
        return sorted(
            process.pid
            for process in members
            if process.parent == members[0].pid and not process.name.startswith("jobs-")
        )

    def lock_holder(self) -> int:
        """The free worker that waits for the pipe with the queue's lock in its hand; the others wait for the lock."""
        return next(pid for pid in self.workers("jobs-free") if not waits_for_a_lock(pid))

    def kill(self, pid: int | None, number: int = signal.SIGKILL) -> None:
        assert pid in {self.process.pid} | {process.pid for process in self.members()}, (
            "only our own children are killed"
        )
        os.kill(pid, number)

    def orphans(self) -> list[int]:
        """Processes that were of this worker, live, and are below it no more."""
        below = (
            {process.pid for process in self.members()} if self.process.poll() is None else set()
        )
        return [pid for pid in self.ever - below if is_our_python(pid)]

    def end(self) -> None:
        """Stop it, by force at last."""
        if self.process.poll() is None:
            self.members()
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def waits_for_a_lock(pid: int) -> bool:
    """A semaphore is waited for in a futex, a pipe in a read."""
    return "futex" in Path(f"/proc/{pid}/wchan").read_text()


def is_our_python(pid: int) -> bool:
    """Whether the process lives and is a worker of this project, not another that was given its number."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return (
            state != STATE_ZOMBIE
            and b"manage.py\0worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
    except OSError:
        return False

"""Run a real `chatcore worker` over a database of its own, and kill or stop parts of it."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import environ
import psutil
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.db.utils import load_backend

from tests.support.prepared_database import create_database, put_database
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
SERVER = os.environ.get("CHATCORE_TEST_DATABASE_URL", "postgres://postgres@127.0.0.1:5432/postgres")


def server_answers() -> bool:
    """Return True if there is a PostgreSQL server to test on."""
    try:
        psycopg.connect(SERVER, connect_timeout=3).close()
    except psycopg.OperationalError:
        return False
    return True


KINDS = ("sqlite", "postgres") if server_answers() else ("sqlite",)


@contextmanager
def open_database(kind: str, folder: Path) -> Iterator[str]:
    """Create a migrated database, make it the `default` connection, and yield its URL."""
    if kind == "sqlite":
        put_database(folder)
        with use_database(
            f"sqlite:///{folder}/chatcore.sqlite3", transaction_mode="IMMEDIATE", timeout=20
        ) as url:
            yield url
        return
    name = f"chatcore_worker_{uuid.uuid4().hex[:12]}"
    create_database(SERVER, name)
    try:
        with use_database(f"{SERVER.rpartition('/')[0]}/{name}") as url:
            yield url
    finally:
        with psycopg.connect(SERVER, autocommit=True) as server:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def use_database(url: str, **options: Any) -> Iterator[str]:
    """Make the database at `url` the `default` one in this thread, and create its tables."""
    database_settings = connections.configure_settings(
        {"default": {**environ.Env.db_url_config(url), "OPTIONS": options}}
    )["default"]
    database_settings["TEST"] = connections["default"].settings_dict["TEST"]
    previous_connection = connections["default"]
    connections["default"] = load_backend(database_settings["ENGINE"]).DatabaseWrapper(
        database_settings, "default"
    )
    try:
        call_command("migrate", verbosity=0)
        call_command("createcachetable", verbosity=0)
        yield url
    finally:
        connections["default"].close()
        connections["default"] = previous_connection


def build_environment(url: str, folder: Path) -> dict[str, str]:
    """Return the environment of a command over this database and data folder."""
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "chatcore.settings",
        "CHATCORE_DATA_DIR": str(folder),
        "CHATCORE_DATABASE_URL": url,
        "CHATCORE_SECRET_KEY": settings.SECRET_KEY,
        "CHATCORE_KEY_ENCRYPTION_KEYS": ",".join(settings.CHATCORE["KEY_ENCRYPTION_KEYS"]),
        "CHATCORE_LOG_LEVEL": "INFO",
    }


class Worker:
    """One `chatcore worker` process and all processes below it."""

    def __init__(self, url: str, folder: Path, *arguments: str) -> None:
        self.log = folder / "worker.log"
        self.arguments = arguments
        self.environment = build_environment(url, folder)
        self.seen_pids: set[int] = set()
        self.start()

    def start(self) -> None:
        """Start the command in a process group of its own, also again after its death."""
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
        wait_until(
            lambda: len(self.list_workers()) >= 2 and self.find("monitor") and self.find("pusher"),
            seconds=90,
            what="the cluster's start",
        )

    def list_members(self) -> dict[int, str]:
        """Return all living processes below the command, with their names in ps."""
        members = {process.pid: read_name(process.pid) for process in list_living(self.process.pid)}
        self.seen_pids |= set(members)
        return members

    def find_sentinel(self) -> int:
        """Return the child of the cluster's first process."""
        (cluster,) = psutil.Process(self.process.pid).children()
        return int(cluster.children()[0].pid)

    def list_workers(self, state: str = "") -> list[int]:
        """Return the workers, or those that are "idle" or "processing"."""
        states = [state] if state else ["idle", "processing"]
        return [
            pid
            for pid, name in self.list_members().items()
            if any(f" {word}" in name for word in states)
        ]

    def find(self, kind: str) -> int | None:
        """Return the monitor or the pusher."""
        return next((pid for pid, name in self.list_members().items() if f" {kind}" in name), None)

    def find_lock_holder(self) -> int:
        """Return the free worker that holds the queue's lock; the others wait for that lock."""
        return next(pid for pid in self.list_workers("idle") if not waits_for_a_lock(pid))

    def kill(self, pid: int | None, number: int = signal.SIGKILL) -> None:
        assert pid in {self.process.pid} | set(self.list_members()), (
            "only our own children are killed"
        )
        os.kill(pid, number)

    def find_orphans(self) -> list[int]:
        """Return living processes that were below this worker and are not any more."""
        below = set(self.list_members()) if self.process.poll() is None else set()
        return [pid for pid in self.seen_pids - below if is_our_python(pid)]

    def stop(self) -> None:
        """Stop the command, by force after 20 seconds."""
        if self.process.poll() is None:
            self.list_members()
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def list_living(pid: int) -> list[psutil.Process]:
    """Return the processes below `pid` that are not dead."""
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [process for process in below if is_living(process)]


def is_living(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def read_name(pid: int) -> str:
    """Return the name of a process in ps: django-q2 says there what it does."""
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.NoSuchProcess:
        return ""


def waits_for_a_lock(pid: int) -> bool:
    """Return True if the process waits for a semaphore (a futex), and not for a pipe."""
    return "futex" in Path(f"/proc/{pid}/wchan").read_text()


def is_our_python(pid: int) -> bool:
    """Return True if the process lives and is a worker, and not another one with its number."""
    return psutil.pid_exists(pid) and is_living(psutil.Process(pid)) and "worker" in read_name(pid)

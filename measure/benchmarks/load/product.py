"""Run one web process of Chatcore with a provider, a database and a data folder of its own."""

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

DEFAULT_POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres"
START_SECONDS = 60.0
PRIORITY = -15  # a nice value


@dataclass(frozen=True, kw_only=True)
class Person:
    """A user of the running product: an API token and sessions without messages."""

    token: str
    sessions: list[str]


@dataclass(frozen=True, kw_only=True)
class Product:
    """A running web process, and who may use it."""

    port: int
    pid: int
    environment: dict[str, str]
    people: list[Person]


def find_postgres() -> str | None:
    """Return the address of a PostgreSQL server that answers, or None."""
    url = os.environ.get("CHATCORE_TEST_DATABASE_URL", DEFAULT_POSTGRES)
    try:
        psycopg.connect(url.replace("postgres://", "postgresql://"), connect_timeout=3).close()
    except psycopg.OperationalError:
        return None
    return url


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the database (by default each that answers) and the priority."""
    parser.add_argument(
        "--priority", action="store_true", help="run before other work of the machine (as root)"
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--sqlite", action="store_true", help="SQLite only")
    choice.add_argument("--postgres", action="store_true", help="PostgreSQL only")


def apply_common_options(options: argparse.Namespace) -> dict[str, str | None]:
    """Return the address of the server for the name of each database; SQLite has none.

    Raises SystemExit if PostgreSQL is asked for and does not answer. Takes the priority as well,
    which all processes inherit that are started from now on; that of PostgreSQL is not ours.
    """
    if options.priority:
        _raise_priority()
    databases: dict[str, str | None] = {} if options.postgres else {"SQLite": None}
    postgres_url = None if options.sqlite else find_postgres()
    if postgres_url:
        databases["PostgreSQL"] = postgres_url
    elif options.postgres:
        raise SystemExit("No PostgreSQL server answers.")
    return databases


def _raise_priority() -> None:
    os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    # With autogroups, Linux compares the priorities of sessions and not those of processes.
    autogroup = Path("/proc/self/autogroup")
    if autogroup.exists():
        with contextlib.suppress(PermissionError):  # a job of a terminal is in its own group
            os.setsid()
        autogroup.write_text(str(PRIORITY))


@contextlib.contextmanager
def run_provider(pace: float) -> Iterator[int]:
    """Run the paced provider in a process of its own, and yield its port."""
    command = [sys.executable, "-m", "measure.benchmarks.load.paced_provider", str(pace)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(10)


@contextlib.contextmanager
def run_product(
    provider_port: int, *, postgres_url: str | None, people: int, sessions: int, web: int = 1
) -> Iterator[Product]:
    """Run web processes over a new SQLite file, or over a new database of a PostgreSQL server."""
    with (
        tempfile.TemporaryDirectory(prefix="chatcore-load-") as folder,
        create_database(folder, postgres_url) as database_url,
    ):
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "chatcore.settings",
            "PYTHONWARNINGS": "ignore",
            "CHATCORE_DATA_DIR": folder,
            "CHATCORE_DATABASE_URL": database_url,
            "CHATCORE_DEBUG": "0",
            "CHATCORE_SECRET_KEY": "a secret of a benchmark, which guards nothing at all",
            "CHATCORE_KEY_ENCRYPTION_KEYS": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
            "CHATCORE_LOG_LEVEL": "CRITICAL",
        }
        base_url = f"http://127.0.0.1:{provider_port}/v1"
        program = [sys.executable, "-m", "measure.benchmarks.load.people"]
        output = subprocess.run(
            [*program, base_url, str(people), str(sessions)],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        setup = json.loads(output.splitlines()[-1])
        rows = [Person(token=token, sessions=ids) for token, ids in setup["people"]]
        command = [sys.executable, "-m", "chatcore", "web", "--port", "PORT"]
        command += ["--processes", str(web)]
        with run_web_server(command, environment) as (port, pid):
            yield Product(port=port, pid=pid, environment=environment, people=rows)


@contextlib.contextmanager
def run_web_server(command: list[str], environment: dict[str, str]) -> Iterator[tuple[int, int]]:
    """Run a web server, and yield its port and process id. "PORT" in the command is replaced."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [str(port) if argument == "PORT" else argument for argument in command], env=environment
    )
    try:
        deadline = time.monotonic() + START_SECONDS
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None, "the server could not start"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def create_database(folder: str, postgres_url: str | None) -> Iterator[str]:
    """Yield the address of a new database, which goes with the context."""
    if postgres_url is None:
        yield f"sqlite:///{folder}/chatcore.sqlite3"
        return
    name = f"chatcore_load_{uuid.uuid4().hex[:12]}"
    server = psycopg.connect(postgres_url.replace("postgres://", "postgresql://"), autocommit=True)
    server.execute(f'CREATE DATABASE "{name}"')
    try:
        yield f"{postgres_url.rpartition('/')[0]}/{name}"
    finally:
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        server.close()

"""The product as `deploy/` starts it, on servers of its own: a database, Redis, a provider.

The commands are the ExecStart lines of the systemd units, and the variables those of the example
there; the soak adds two web processes on one port and a sink for traces.
"""

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import psutil
import psycopg

from tests.support.pgbouncer import PgBouncer, find_pgbouncer
from tests.support.postgres_server import PostgresServer
from tests.support.prepared_database import SECRETS
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
UNITS = ROOT / "deploy" / "systemd"
PROBE = ROOT / "measure" / "soak" / "probe"
# On PostgreSQL, on PostgreSQL behind PgBouncer, and on SQLite: what of them is installed.
PASSES = tuple(
    name
    for name, is_possible in {
        "postgres": PostgresServer.is_installed(),
        "pgbouncer": PostgresServer.is_installed() and find_pgbouncer(),
        "sqlite": True,
    }.items()
    if is_possible
)
USERS = 12
PASSWORD = "soak soak soak"
WEB_SERVER = "chatcore.serving.web_server"
# What is allowed to one user, who is all clients of the soak.
RAISED = (
    "TURNS_PER_MINUTE",
    "TURNS_AT_ONCE_PER_USER",
    "STREAMS_AT_ONCE_PER_USER",
    "COMPACTIONS_PER_MINUTE",
)
REGISTER = """
from django.contrib.auth.models import User
from knox.models import AuthToken
from models_registry.models import AiModel, Provider
p = Provider.objects.create(name="soak", protocol="openai", base_url={url!r}, is_active=True)
for name in ("soak", "small"):
    AiModel.objects.create(provider=p, name=name, is_default=name == "soak", supports_tools=True,
        context_window_size=32768 if name == "soak" else 2048)
for number in range({users}):
    user = User.objects.create_superuser(f"soak{{number}}", password={password!r})
    print("USER", user.username, AuthToken.objects.create(user)[1])
"""


def read_command(unit: str) -> list[str]:
    """Return the arguments of a unit's program."""
    for line in (UNITS / unit).read_text().splitlines():
        if line.startswith("ExecStart="):
            return shlex.split(line.removeprefix("ExecStart="))[1:]
    raise ValueError(unit)


def read_variables() -> dict[str, str]:
    """Return the variables in the example of an environment file."""
    lines = (UNITS / "chatcore.env.example").read_text().splitlines()
    pairs = (line.partition("=") for line in lines if line.startswith("CHATCORE_"))
    return {name: value for name, _, value in pairs}


class _Sink(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@dataclass
class Deployment:
    """The running servers: `with Deployment("postgres") as deployment`."""

    kind: str
    web_processes: int = 2
    users: list[tuple[str, str]] = field(default_factory=list)  # names and tokens
    folder: Path = field(init=False)
    redis: str = field(init=False)  # its address, or nothing where it is not installed
    port: int = field(init=False)
    provider: str = field(init=False)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.folder = Path(tempfile.mkdtemp(prefix="chatcore-soak-"))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self.redis = ""
            if RedisServer.is_installed():
                self.redis = stack.enter_context(RedisServer(self.folder)).url
            self._postgres = None
            if self.kind != "sqlite":
                self._postgres = stack.enter_context(
                    PostgresServer(SERVER_OPTIONS, self.server_log)
                )
            self._pooler = None
            if self._postgres and self.kind == "pgbouncer":
                pooler = PgBouncer(self.folder / "pgbouncer", self._postgres.port)
                self._pooler = stack.enter_context(pooler)
            self.port = find_free_port()
            self.provider = stack.enter_context(self._run_provider())
            self._traces = stack.enter_context(_run_sink())
            self._processes: dict[str, subprocess.Popen[bytes]] = {}
            stack.callback(self._stop_all)
            self.run("prepare")
            self.run("collectstatic", "--noinput", "--verbosity", "0")
            code = REGISTER.format(url=f"{self.provider}/v1", users=USERS, password=PASSWORD)
            lines = [line.split() for line in self.run("shell", "-c", code).splitlines()]
            self.users = [(line[1], line[2]) for line in lines if line[:1] == ["USER"]]
            self.start_servers()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def server_log(self) -> Path:
        return self.folder / "postgresql.log"

    @property
    def database(self) -> str:
        """The address of PostgreSQL, or the path of the file of SQLite."""
        return self._postgres.url if self._postgres else str(self.folder / "chatcore.sqlite3")

    def build_environment(self, name: str) -> dict[str, str]:
        """Return the environment of a process."""
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("CHATCORE_", "DJANGO_"))}
        database = self.database if self._postgres else f"sqlite:///{self.database}"
        if self._pooler:
            database = self._pooler.url
        return {
            **ours,
            **read_variables(),
            "CHATCORE_PUBLIC_URL": self.url,
            "CHATCORE_DATABASE_URL": database,
            "CHATCORE_REDIS_URL": self.redis,
            **SECRETS,
            "CHATCORE_DATA_DIR": str(self.folder),
            "CHATCORE_METRICS_DIR": str(self.folder / "metrics"),
            "CHATCORE_STATIC_DIR": str(self.folder / "static"),
            "CHATCORE_METRICS_TOKEN": "soak",
            "CHATCORE_TRACES": "on",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self._traces,
            "CHATCORE_FETCH_ALLOW_HOSTS": self.provider.removeprefix("http://"),
            **{f"CHATCORE_{limit}": "1000000" for limit in RAISED},
            "SOAK_PROBE": str(self.folder) if name in ("web", "worker") else "",
            "PYTHONPATH": os.pathsep.join([str(PROBE), str(ROOT)]),
        }

    def run(self, *arguments: str) -> str:
        """Run a command over the same data, and return what it prints."""
        process = subprocess.run(
            [sys.executable, "-m", "chatcore", *arguments],
            env=self.build_environment("command"),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    def start_servers(self) -> None:
        """Start web processes and worker by the commands of `deploy/`."""
        web = [part.replace("%i", str(self.port)) for part in read_command("chatcore-web@.service")]
        self._start("web", *web, "--processes", str(self.web_processes))
        self._start("worker", *read_command("chatcore-worker.service"))
        wait_until(self._is_ready, what="the web processes")

    def restart_servers(self) -> None:
        """End web processes and worker, and start new ones."""
        self._stop_all()
        self.start_servers()

    def _start(self, name: str, *arguments: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        self._processes[name] = subprocess.Popen(
            [sys.executable, "-m", "chatcore", *arguments],
            env=self.build_environment(name),
            cwd=self.folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def _stop_all(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _is_ready(self) -> bool:
        assert self._processes["web"].poll() is None, self.read_log("web")[-3000:]
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=10) as response:
                is_ready = response.status == 200
        except OSError:
            return False
        return is_ready and len(self.list_web_processes()) == self.web_processes

    def list_web_processes(self) -> list[int]:
        """Return the ids of the web processes, in a lasting order."""
        first = psutil.Process(self._processes["web"].pid)
        if self.web_processes == 1:
            return [first.pid]
        children = first.children()
        return sorted(each.pid for each in children if WEB_SERVER in " ".join(each.cmdline()))

    def list_worker_processes(self) -> list[int]:
        first = psutil.Process(self._processes["worker"].pid)
        return [first.pid, *(each.pid for each in first.children(recursive=True))]

    def look_into(self, pid: int) -> dict[str, Any]:
        """Return what the probe of a web process sees."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60)
            client.connect(str(self.folder / f"{pid}.sock"))
            data = b""
            while piece := client.recv(1 << 20):
                data += piece
        value: dict[str, Any] = json.loads(data)
        assert "error" not in value, value
        return value

    def mark_logs(self) -> dict[str, int]:
        """Return how long each log is now."""
        return {name: len(self.read_log(name)) for name in ("web", "worker", "postgresql")}

    def read_log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def count_open_calls(self) -> int:
        """Return how many calls the provider is answering."""
        with urllib.request.urlopen(f"{self.provider}/open", timeout=10) as response:
            return int(json.load(response)["open"])

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, on PostgreSQL."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            return connection.execute(sql.encode()).fetchall()

    @contextlib.contextmanager
    def _run_provider(self) -> Iterator[str]:
        command = [sys.executable, "-m", "measure.soak.provider"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
            assert process.stdout
            try:
                yield f"http://127.0.0.1:{int(process.stdout.readline())}"
            finally:
                process.kill()


# As the finding's servers: what is slow or refused stands in the log.
SERVER_OPTIONS = (
    "max_connections=100",
    "log_lock_waits=on",
    "deadlock_timeout=500ms",
    "log_min_messages=error",
)


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _run_sink() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()

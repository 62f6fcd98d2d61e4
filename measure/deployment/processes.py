"""The processes of a small deployment on this machine, from the files of deploy/."""

import base64
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import psycopg

ROOT = Path(__file__).resolve().parents[2]
POSTGRES = os.environ.get("TRY_OUT_POSTGRES", "postgres://postgres@127.0.0.1:5432")
REDIS = os.environ.get("TRY_OUT_REDIS", "redis://127.0.0.1:6379/7")
WEB_PORTS = (18001, 18002)
TLS_PORT, PROMETHEUS_PORT, WORKER_METRICS_PORT = 18443, 19090, 19464
TOKEN = "a token for Prometheus"
REGISTER = """
from models_registry.models import AiModel, Provider
from knox.models import AuthToken
from chatcore.web.sign_in import ensure_administrator
p = Provider.objects.create(name="scripted", protocol="openai", base_url={url!r})
AiModel.objects.create(provider=p, name="model", context_window_size=8192, is_default=True)
print(AuthToken.objects.create(ensure_administrator())[1])
"""


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def wait_for(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if answer := condition():
                return answer
        except (httpx2.HTTPError, OSError, ValueError, KeyError):
            pass
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.3)


class Deployment:
    """The processes, by name, and their folder."""

    def __init__(self, folder: Path, provider_url: str) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.secret_variables = {
            "CHATCORE_SECRET_KEY": "of the trial, which guards nothing",
            "CHATCORE_KEY_ENCRYPTION_KEYS": base64.urlsafe_b64encode(os.urandom(32)).decode(),
        }
        self.database = self.create_database("chatcore_try_out")
        self.token = ""
        self.run("prepare")
        code = REGISTER.format(url=provider_url)
        self.token = self.run("shell", "-c", code).split()[-1]

    def create_database(self, name: str) -> str:
        with psycopg.connect(f"{POSTGRES}/postgres", autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {name}")
        return f"{POSTGRES}/{name}"

    def build_environment(self, name: str, database: str = "") -> dict[str, str]:
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("CHATCORE_", "DJANGO_"))}
        return {
            **ours,
            **self.secret_variables,
            "CHATCORE_DATABASE_URL": database or self.database,
            "CHATCORE_REDIS_URL": REDIS,
            # One folder a machine: here two machines of one web process and one worker each.
            "CHATCORE_DATA_DIR": str(self.folder / f"machine{name[-1:]}"),
            "CHATCORE_METRICS_DIR": str(self.folder / f"machine{name[-1:]}" / "metrics"),
            "CHATCORE_METRICS_TOKEN": TOKEN,
            "CHATCORE_PUBLIC_URL": f"https://localhost:{TLS_PORT}",
            "CHATCORE_TURNS_AT_ONCE_PER_USER": "100",
            "CHATCORE_TURNS_PER_MINUTE": "1000",
        }

    def run(self, *arguments: str, name: str = "command1", database: str = "") -> str:
        process = subprocess.run(
            [sys.executable, "-m", "chatcore", *arguments],
            env=self.build_environment(name, database),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    def start(self, name: str, *command: str, **variables: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        self.processes[name] = subprocess.Popen(
            command,
            env={**self.build_environment(name), **variables},
            cwd=ROOT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def start_web(self, number: int) -> None:
        port = WEB_PORTS[number - 1]
        command = (sys.executable, "-m", "chatcore", "web", "--port", str(port))
        self.start(f"web{number}", *command)
        wait_for(lambda: self.is_ready(port), 120, f"web{number}")

    def start_worker(self, number: int) -> None:
        metrics = f"127.0.0.1:{WORKER_METRICS_PORT + number}"
        command = (sys.executable, "-m", "chatcore", "worker", "--workers", "1")
        self.start(f"worker{number}", *command, "--metrics", metrics)

    def is_ready(self, port: int) -> bool:
        return httpx2.get(f"http://127.0.0.1:{port}/readyz", timeout=10).status_code == 200

    def stop_all(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)

    def start_nginx(self) -> None:
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
                *("-keyout", self.folder / "privkey.pem", "-out", self.folder / "fullchain.pem"),
            ],
            check=True,
            capture_output=True,
        )
        text = (ROOT / "deploy/proxy/nginx.conf").read_text()
        for old, new in (
            ("/etc/nginx/tls", str(self.folder)),
            ("listen 443 ", f"listen 127.0.0.1:{TLS_PORT} "),
            ("listen 80;", "listen 127.0.0.1:18080;"),
            ("web1:8000", f"127.0.0.1:{WEB_PORTS[0]}"),
            ("web2:8000", f"127.0.0.1:{WEB_PORTS[1]}"),
        ):
            assert old in text, old
            text = text.replace(old, new)
        (self.folder / "chatcore.conf").write_text(text)
        (self.folder / "nginx.conf").write_text(
            f"daemon off; pid {self.folder}/nginx.pid; error_log {self.folder}/nginx-error.log;\n"
            "events {}\n"
            f"http {{ access_log {self.folder}/nginx-access.log;\n"
            f"include {self.folder}/chatcore.conf; }}\n"
        )
        program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or "nginx"
        self.start("nginx", program, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"))

    def start_prometheus(self) -> None:
        (self.folder / "token").write_text(TOKEN)
        text = (ROOT / "deploy/prometheus/prometheus.yml").read_text()
        for old, new in (
            ("/etc/prometheus/chatcore-token", str(self.folder / "token")),
            ("web1:8000", f"127.0.0.1:{WEB_PORTS[0]}"),
            ("web2:8000", f"127.0.0.1:{WEB_PORTS[1]}"),
            ("worker1:9464", f"127.0.0.1:{WORKER_METRICS_PORT + 1}"),
            ("worker2:9464", f"127.0.0.1:{WORKER_METRICS_PORT + 2}"),
            ("15s", "2s"),
        ):
            assert old in text, old
            text = text.replace(old, new)
        (self.folder / "prometheus.yml").write_text(text)
        shutil.copy(ROOT / "deploy/prometheus/alerts.yml", self.folder)
        self.start(
            "prometheus",
            "prometheus",
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{PROMETHEUS_PORT}",
        )

    def open_client(self, port: int = 0) -> httpx2.Client:
        url = f"http://127.0.0.1:{port}" if port else f"https://localhost:{TLS_PORT}"
        headers = {"Authorization": f"Bearer {self.token}", "Host": f"localhost:{TLS_PORT}"}
        if port:
            headers["X-Forwarded-Proto"] = "https"
        context = ssl.create_default_context(cafile=str(self.folder / "fullchain.pem"))
        limits = httpx2.Limits(max_connections=100)
        return httpx2.Client(
            base_url=f"{url}/api/v1", headers=headers, timeout=300, verify=context, limits=limits
        )

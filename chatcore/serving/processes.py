"""What `serve` runs: the web server, the job worker and the embedded model, each as a child to supervise."""

import secrets
import sys
from collections.abc import Callable
from math import inf

from django.conf import settings

from chatcore.local_model.server import LOOPBACK, find_free_port
from chatcore.serving import health
from chatcore.serving.supervisor import ChildProcess

GRACE_SECONDS = 5
WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


def build_web_server(host: str, port: int, *, on_answer: Callable[[], None]) -> ChildProcess:
    """The ASGI server; `on_answer` is called at its first answer after each start."""
    options = [
        "--host",
        host,
        "--port",
        str(port),
        "--loop",
        "uvloop",
        "--no-access-log",
        "--log-level",
        "warning",
    ]
    return ChildProcess(
        name="web server",
        command=[
            sys.executable,
            "-m",
            "uvicorn",
            "chatcore.asgi:application",
            *options,
            "--timeout-graceful-shutdown",
            str(GRACE_SECONDS),
        ],
        environment=_build_environment(),
        health=health.HealthAddress(host=WILDCARD_HOSTS.get(host, host), port=port, path="/livez"),
        stop_seconds=GRACE_SECONDS + 5,
        on_answer=on_answer,
    )


def build_worker(process_count: int) -> ChildProcess:
    """The job cluster with `count` processes; without a connection pool, which cannot cross its forks."""
    return ChildProcess(
        name="worker",
        command=[sys.executable, "-m", "chatcore", "worker"],
        environment={
            **_build_environment(),
            "CHATCORE_DATABASE_POOL": "0",
            "CHATCORE_WORKERS": str(process_count),
        },
    )


def build_local_model() -> ChildProcess:
    """The embedded model, with an address and a key that stay the same when it is started again."""
    port = settings.LOCAL_MODEL["PORT"] or find_free_port()
    key = settings.LOCAL_MODEL["API_KEY"] or secrets.token_urlsafe(32)
    return ChildProcess(
        name="embedded model",
        command=[sys.executable, "-m", "chatcore.local_model.server"],
        environment={
            **_build_environment(),
            "CHATCORE_LOCAL_MODEL_PORT": str(port),
            "CHATCORE_LOCAL_MODEL_API_KEY": key,
        },
        health=health.HealthAddress(host=LOOPBACK, port=port, path="/health"),
        startup_seconds=inf,  # a first start may download a gigabyte
    )


def format_link_host(host: str) -> str:
    """`host` as it stands in a link: somewhere to go, and an IPv6 address in brackets."""
    host = WILDCARD_HOSTS.get(host, host)
    return f"[{host}]" if ":" in host else host


def _build_environment() -> dict[str, str]:
    return {"CHATCORE_DATA_DIR": str(settings.DATA_DIR)}

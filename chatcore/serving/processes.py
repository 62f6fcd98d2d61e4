"""The processes of `chatcore serve`: the web server, the worker and the embedded model."""

import secrets
import sys
from collections.abc import Callable
from math import inf

from django.conf import settings

from chatcore.local_model.server import LOOPBACK, find_free_port
from chatcore.serving import health
from chatcore.serving.supervisor import ChildProcess
from chatcore.serving.web_server import GRACE_SECONDS

STOP_SECONDS = GRACE_SECONDS + 5  # of a web process, after the last of its answers
# A server listens at a wildcard, but a client cannot connect to one.
WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


def build_web_servers(
    host: str,
    port: int,
    count: int,
    *,
    on_answer: Callable[[], None] = lambda: None,
    drain_seconds: int = 0,
) -> list[ChildProcess]:
    """Describe `count` web processes on one port; `on_answer` is called at first answers.

    It is called after each start of each process. `drain_seconds` is how long running answers may
    go on after TERM.
    """
    names = ["web server"] if count == 1 else [f"web server {n}" for n in range(1, count + 1)]
    return [_build_web_server(name, host, port, on_answer, drain_seconds) for name in names]


def _build_web_server(
    name: str, host: str, port: int, on_answer: Callable[[], None], drain_seconds: int
) -> ChildProcess:
    health_port = find_free_port()
    return ChildProcess(
        name=name,
        command=[
            *(sys.executable, "-m", "chatcore.serving.web_server"),
            *(host, str(port), str(health_port)),
        ],
        environment=_build_environment()
        | {
            # The printed link has the address at which the server listens.
            "CHATCORE_ALLOWED_HOSTS": ",".join([*settings.NAMED_HOSTS, format_link_host(host)]),
            "CHATCORE_DRAIN_SECONDS": str(drain_seconds),
        },
        health=health.HealthAddress(host=LOOPBACK, port=health_port, path="/livez"),
        stop_seconds=drain_seconds + STOP_SECONDS,
        on_answer=on_answer,
    )


def build_worker(process_count: int) -> ChildProcess:
    """Describe the job cluster with `process_count` processes."""
    environment = _build_environment()
    environment["CHATCORE_WORKERS"] = str(process_count)
    # The cluster forks its processes, and a pool of connections does not survive a fork.
    environment["CHATCORE_DATABASE_POOL"] = "0"
    return ChildProcess(
        name="worker",
        command=[sys.executable, "-m", "chatcore", "worker"],
        environment=environment,
    )


def build_local_model() -> ChildProcess:
    """Describe the embedded model. It keeps its port and its key when it is started again."""
    options = settings.LOCAL_MODEL
    port = options["PORT"] or find_free_port()
    key = options["API_KEY"] or secrets.token_urlsafe(32)
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
    """Return the host for a link: a reachable one for a wildcard, an IPv6 address in brackets."""
    host = WILDCARD_HOSTS.get(host, host)
    return f"[{host}]" if ":" in host else host


def _build_environment() -> dict[str, str]:
    return {"CHATCORE_DATA_DIR": str(settings.DATA_DIR)}

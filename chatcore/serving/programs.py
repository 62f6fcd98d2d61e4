"""The programs of `chatcore serve`: web processes, the worker and the embedded model."""

import secrets
import sys

from django.conf import settings

from chatcore.serving.local_model.server import find_free_port
from chatcore.serving.parent import Program
from chatcore.serving.web_server import GRACE_SECONDS

MAX_WEB_PROCESSES = 64
STOP_SECONDS = GRACE_SECONDS + 5  # of a web process, after the last of its answers
# A server listens at a wildcard, but a client cannot connect to one.
WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


def build_web_programs(
    host: str, count: int, *, drain_seconds: int, static_folder: str, local_model: str = "unknown"
) -> list[Program]:
    """Describe `count` web processes that share a socket.

    `drain_seconds` is how long running answers may go on after TERM; `static_folder` has been
    filled by `collectstatic`, or is empty: then the files are sent as the packages have them.
    `local_model` says whether the embedded model is started beside them.
    """
    names = ["web server"] if count == 1 else [f"web server {n}" for n in range(1, count + 1)]
    environment = _build_environment() | {
        # The printed link has the address at which the server listens.
        "CHATCORE_ALLOWED_HOSTS": ",".join([*settings.NAMED_HOSTS, format_link_host(host)]),
        "CHATCORE_DRAIN_SECONDS": str(drain_seconds),
        "CHATCORE_STATIC_DIR": static_folder,
        "CHATCORE_LOCAL_MODEL_START": local_model,
    }
    return [
        Program(
            name=name,
            command=[sys.executable, "-m", "chatcore.serving.web_server"],
            environment=environment,
            stop_seconds=drain_seconds + STOP_SECONDS,
            is_web=True,
        )
        for name in names
    ]


def build_worker(process_count: int) -> Program:
    """Describe the job worker with `process_count` processes."""
    environment = _build_environment() | {
        "CHATCORE_WORKERS": str(process_count),
        # The cluster forks its processes, and a pool of connections does not survive a fork.
        "CHATCORE_DATABASE_POOL": "0",
    }
    return Program(
        name="worker", command=[sys.executable, "-m", "chatcore", "worker"], environment=environment
    )


def build_local_model() -> Program:
    """Describe the embedded model. It keeps its port and its key when it is started again."""
    options = settings.LOCAL_MODEL
    environment = _build_environment() | {
        "CHATCORE_LOCAL_MODEL_PORT": str(options["PORT"] or find_free_port()),
        "CHATCORE_LOCAL_MODEL_API_KEY": options["API_KEY"] or secrets.token_urlsafe(32),
    }
    return Program(
        name="embedded model",
        command=[sys.executable, "-m", "chatcore.serving.local_model.server"],
        environment=environment,
    )


def format_link_host(host: str) -> str:
    """Return the host for a link: a reachable one for a wildcard, an IPv6 address in brackets."""
    host = WILDCARD_HOSTS.get(host, host)
    return f"[{host}]" if ":" in host else host


def _build_environment() -> dict[str, str]:
    return {"CHATCORE_DATA_DIR": str(settings.DATA_DIR)}

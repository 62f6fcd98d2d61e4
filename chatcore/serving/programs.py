"""The programs of `chatcore serve`: web processes, the worker, and those of apps."""

import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from django.conf import settings

from chatcore.serving.parent import Program
from chatcore.serving.web_server import GRACE_SECONDS

MAX_WEB_PROCESSES = 64
STOP_SECONDS = GRACE_SECONDS + 5  # of a web process, after the last of its answers
# A server listens at a wildcard, but a client cannot connect to one.
WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


@dataclass(frozen=True, kw_only=True)
class Addition:
    """What an app adds to one `serve`. The variables are for web processes, the line is printed."""

    programs: Sequence[Program] = ()
    web_environment: Mapping[str, str] = field(default_factory=dict)
    line: str = ""


class Companion:
    """What an app has to do with `serve`; `Extension.companion` names its subclass."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add options to those of `serve`."""

    def prepare(self) -> None:
        """Set the database right before anything starts."""

    def add(self, options: Mapping[str, object]) -> Addition:
        """Return what is started for these options."""
        return Addition()


def build_web_programs(
    host: str,
    count: int,
    *,
    drain_seconds: int,
    static_folder: str,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> list[Program]:
    """Describe `count` web processes that share a socket.

    `drain_seconds` is how long running answers may go on after TERM; `static_folder` has been
    filled by `collectstatic`, or is empty: then the files are sent as the packages have them.
    `environment` is what apps tell them.
    """
    names = ["web server"] if count == 1 else [f"web server {n}" for n in range(1, count + 1)]
    web_environment = build_environment() | {
        # The printed link has the address at which the server listens.
        "CHATCORE_ALLOWED_HOSTS": ",".join([*settings.NAMED_HOSTS, format_link_host(host)]),
        "CHATCORE_DRAIN_SECONDS": str(drain_seconds),
        "CHATCORE_STATIC_DIR": static_folder,
        **environment,
    }
    return [
        Program(
            name=name,
            command=[sys.executable, "-m", "chatcore.serving.web_server"],
            environment=web_environment,
            stop_seconds=drain_seconds + STOP_SECONDS,
            is_web=True,
        )
        for name in names
    ]


def build_worker(process_count: int) -> Program:
    """Describe the job worker with `process_count` processes."""
    environment = build_environment() | {"CHATCORE_WORKERS": str(process_count)}
    return Program(
        name="worker", command=[sys.executable, "-m", "chatcore", "worker"], environment=environment
    )


def format_link_host(host: str) -> str:
    """Return the host for a link: a reachable one for a wildcard, an IPv6 address in brackets."""
    host = WILDCARD_HOSTS.get(host, host)
    return f"[{host}]" if ":" in host else host


def build_environment() -> dict[str, str]:
    """Return the variables that every program gets."""
    return {"CHATCORE_DATA_DIR": str(settings.DATA_DIR)}

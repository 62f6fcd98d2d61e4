"""Run the web process as in production, over the database of this process."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings


def build_environment() -> dict[str, str]:
    """Return the environment of a process that uses the database of this one."""
    database = {
        "CHATCORE_DATABASE_URL": f"sqlite:///{settings.DATABASES['default']['NAME']}",
        "CHATCORE_DEBUG": "0",
        "CHATCORE_STREAMS_AT_ONCE_PER_USER": "10000",  # one user has all readers of `sse`
    }
    return {
        **os.environ,
        **database,
        "DJANGO_SETTINGS_MODULE": "chatcore.settings",
        "CHATCORE_SECRET_KEY": settings.SECRET_KEY,
    }


@contextmanager
def run_server() -> Iterator[tuple[str, int]]:
    """Start one web process over this database, and yield its address and process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "chatcore.asgi:application",
        "--port",
        str(port),
        "--log-level",
        "warning",
    ]
    process = subprocess.Popen(
        [*command, "--timeout-graceful-shutdown", "1"], env=build_environment()
    )
    try:
        deadline = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None, "the server could not start"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait(20)

"""One web process as `serve` starts it, with settings of a test's own and no others."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.held_port import hold_port
from tests.support.waiting import wait_until


def build_environment(folder: Path, **variables: str) -> dict[str, str]:
    """Return the environment of this process with these CHATCORE_ variables only."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CHATCORE_", "DJANGO_"))
    }
    return {**inherited, "CHATCORE_DATA_DIR": str(folder), **variables}


@contextmanager
def run_web_server(folder: Path, **variables: str) -> Iterator[str]:
    """Run a web process that gets these CHATCORE_ variables only, and yield its address."""
    with hold_port() as port:
        process = subprocess.Popen(
            [sys.executable, "-m", "chatcore.serving.web_server", "127.0.0.1", str(port), "0"],
            env=build_environment(folder, **variables),
        )
        try:
            wait_until(lambda: is_listening(port), what="the web server")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait(60)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

"""One web process as `serve` starts it, with settings of a test's own and no others."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        reader, ready = os.pipe()
        numbers = (listener.fileno(), ready)
        process = subprocess.Popen(
            [sys.executable, "-m", "chatcore.serving.web_server", *map(str, numbers)],
            env=build_environment(folder, **variables),
            pass_fds=numbers,
        )
        os.close(ready)
        try:
            assert os.read(reader, 1), "the web server did not start"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait(60)
            os.close(reader)

"""A complete Chatcore as a new user starts it: `chatcore serve` in a folder of its own.

Its tables are there already; test_first_start.py is about a start without them.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.support.prepared_database import put_database

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


@dataclass
class ServedProduct:
    """A running `chatcore serve`: its address, its printed lines and its environment."""

    url: str
    pid: int
    environment: dict[str, str]
    lines: list[str] = field(default_factory=list)

    @property
    def sign_in_link(self) -> str:
        """The one-time link, once it is printed."""
        return wait_for(self._find_sign_in_link, 120)

    def _find_sign_in_link(self) -> str | None:
        for line in self.lines:
            match = re.search(r"http://\S+/login/once/\S+", line)
            if match:
                return match[0]
        return None

    def run_command(self, *arguments: str) -> str:
        """Run `chatcore ARGUMENTS` over the same data, and return what it prints."""
        process = subprocess.run(
            [*CHATCORE, *arguments],
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return process.stdout.strip()


# Notes for the embedded model, one a line. They differ, because a small model copies repetitions.
STORY = (ROOT / "tests" / "support" / "served_story.txt").read_text().splitlines()

CHATCORE = [sys.executable, str(ROOT / "manage.py")]


def wait_for(condition: Callable[[], T | None], seconds: float, every: float = 0.2) -> T:
    """Wait until the condition returns a true value, and return that value."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} seconds"
        time.sleep(every)
    return answer


@contextlib.contextmanager
def serve(folder: Path, *arguments: str, **environment: str) -> Iterator[ServedProduct]:
    """Start the product, yield it, and stop it as Ctrl-C does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    variables = {
        **os.environ,
        "CHATCORE_DATA_DIR": str(folder),
        "DJANGO_SETTINGS_MODULE": "chatcore.settings",
    }
    variables.pop("CHATCORE_DATABASE_URL", None)
    variables |= environment
    if "CHATCORE_DATABASE_URL" not in variables:
        put_database(folder)
    process = subprocess.Popen(
        [*CHATCORE, "serve", "--port", str(port), *arguments],
        env=variables,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    product = ServedProduct(url=f"http://127.0.0.1:{port}", pid=process.pid, environment=variables)
    assert process.stdout
    threading.Thread(target=product.lines.extend, args=(process.stdout,), daemon=True).start()
    try:
        yield product
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()

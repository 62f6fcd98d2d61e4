"""A complete Chatcore as a new user starts it: `chatcore serve` in a folder of its own.

Its tables are there already; test_first_start.py is about a start without them.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.support.held_port import hold_port
from tests.support.prepared_database import put_database
from tests.support.waiting import PATIENCE_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


@dataclass
class ServedProduct:
    """A `chatcore serve`: its address, its printed lines and its environment."""

    port: int
    arguments: tuple[str, ...]
    environment: dict[str, str]
    pid: int = 0
    lines: list[str] = field(default_factory=list)
    token: str = ""  # of its administrator, once the scripted model is registered
    _process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, for the first time or again."""
        self._process = subprocess.Popen(
            [*CHATCORE, "serve", "--port", str(self.port), *self.arguments],
            env=self.environment,
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.pid = self._process.pid
        assert self._process.stdout
        output = (self._process.stdout,)
        threading.Thread(target=self.lines.extend, args=output, daemon=True).start()

    def stop(self) -> None:
        """Stop it as Ctrl-C does."""
        assert self._process
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill its first process; the others end with it."""
        assert self._process
        self._process.kill()
        self._process.wait()

    @property
    def sign_in_link(self) -> str:
        """The one-time link, once it is printed."""
        return wait_for(self._find_sign_in_link, what="the sign-in link")

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


def wait_for(
    condition: Callable[[], T | None], seconds: float = PATIENCE_SECONDS, *, what: str = ""
) -> T:
    """Wait until the condition returns a true value, and return that value."""
    answers: list[T] = []

    def has_answer() -> bool:
        if answer := condition():
            answers.append(answer)
        return bool(answers)

    wait_until(has_answer, seconds=seconds, what=what)
    return answers[0]


@contextlib.contextmanager
def serve(folder: Path, *arguments: str, **environment: str) -> Iterator[ServedProduct]:
    """Start the product, yield it, and stop it."""
    variables = {
        **os.environ,
        "CHATCORE_DATA_DIR": str(folder),
        "DJANGO_SETTINGS_MODULE": "chatcore.settings",
    }
    variables.pop("CHATCORE_DATABASE_URL", None)
    variables |= environment
    if "CHATCORE_DATABASE_URL" not in variables:
        put_database(folder)
    with hold_port() as port:
        product = ServedProduct(port=port, arguments=arguments, environment=variables)
        product.start()
        try:
            yield product
        finally:
            product.stop()

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
    """A running `chatcore serve`: its address, its printed lines and its environment."""

    url: str
    pid: int
    environment: dict[str, str]
    lines: list[str] = field(default_factory=list)
    token: str = ""  # of its administrator, once the scripted model is registered

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
    """Start the product, yield it, and stop it as Ctrl-C does."""
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
        process = subprocess.Popen(
            [*CHATCORE, "serve", "--port", str(port), *arguments],
            env=variables,
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        url = f"http://127.0.0.1:{port}"
        product = ServedProduct(url=url, pid=process.pid, environment=variables)
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

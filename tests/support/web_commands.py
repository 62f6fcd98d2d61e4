"""`chatcore web` as operators run it, several over one database, and a gate in an answer."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.support.held_port import hold_port
from tests.support.prepared_database import put_database
from tests.support.served_streams import REGISTER
from tests.support.waiting import PATIENCE_SECONDS, wait_until

PREPARE = "from chatcore.serving.preparation import prepare_database; prepare_database();"
COMMAND = [sys.executable, "-m", "chatcore"]


class GatedWords(Sequence[str]):
    """The pieces of an answer; after the first half it waits until `gate` is set.

    It waits for as long as the test takes: an answer that ended by itself would end the process
    that drains.
    """

    def __init__(self, count: int) -> None:
        self.gate = threading.Event()
        self._words = [f"word{number} " for number in range(count)]

    def __getitem__(self, index: Any) -> Any:
        return self._words[index]

    def __len__(self) -> int:
        return len(self._words)

    def __iter__(self) -> Iterator[str]:
        half = len(self._words) // 2
        yield from self._words[:half]
        self.gate.wait()
        yield from self._words[half:]

    def join(self) -> str:
        return "".join(self._words)


@dataclass(frozen=True)
class Deployment:
    """The environment that all processes of one deployment have."""

    environment: dict[str, str]

    @classmethod
    def create(cls, folder: Path, **variables: str) -> "Deployment":
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CHATCORE_", "DJANGO_"))
        }
        return cls({**inherited, "CHATCORE_DATA_DIR": str(folder), **variables})

    def run(self, *arguments: str, is_checked: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE_SECONDS,
            check=is_checked,
        )

    def prepare(self, base_url: str) -> str:
        """Make the database, a model at this address and an administrator; return a token."""
        if "CHATCORE_DATABASE_URL" not in self.environment:
            put_database(Path(self.environment["CHATCORE_DATA_DIR"]))
        code = f"{PREPARE}{REGISTER.format(url=base_url)}"
        return self.run("shell", "-c", code).stdout.split()[-1]

    @contextmanager
    def run_web(self, *arguments: str) -> Iterator["WebCommand"]:
        """Run `chatcore web` at a free port, and end it if it still runs."""
        with hold_port() as port:
            process = subprocess.Popen(
                [*COMMAND, "web", "--port", str(port), *arguments], env=self.environment
            )
            command = WebCommand(process, f"http://127.0.0.1:{port}")
            try:
                wait_until(lambda: command.is_ready() or process.poll() is not None)
                assert process.poll() is None, f"it ended with {process.returncode}"
                yield command
            finally:
                process.kill()
                process.wait(30)


@dataclass(frozen=True)
class WebCommand:
    """A running `chatcore web`."""

    process: "subprocess.Popen[bytes]"
    url: str

    def is_ready(self) -> bool:
        return self._read_status() == "ok"

    def is_draining(self) -> bool:
        return self._read_status() == "stopping"

    def _read_status(self) -> str | None:
        try:
            status: str = httpx2.get(f"{self.url}/readyz", timeout=10).json()["status"]
        except httpx2.HTTPError:
            return None
        return status

    def ask_to_stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def open_client(self, token: str) -> httpx2.Client:
        return httpx2.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=PATIENCE_SECONDS,
        )

"""`chatcore serve`: one process that starts everything, keeps it alive and takes all of it away."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from chatcore.local_model.server import find_free_port
from compaction.worker.processes import list_descendants

pytestmark = pytest.mark.faults
LINK = re.compile(r"http://127\.0\.0\.1:\d+(/login/once/[^/\s]+/)")


class Serving:
    """A running `chatcore serve --no-local-model` over a data folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.port = find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.output = folder / "output"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "chatcore",
                    "serve",
                    "--no-local-model",
                    "--port",
                    str(self.port),
                    "--workers",
                    "1",
                ],
                env=environment(folder),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def printed(self) -> str:
        return self.output.read_text()

    def lives(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/livez", timeout=2).status_code == 200
        except httpx2.HTTPError:
            return False

    def child(self, words: str) -> int | None:
        """The pid of the supervisor's own child with `words` in its command line."""
        for process in list_descendants(self.process.pid):
            if process.parent == self.process.pid and words in command_line(process.pid):
                return process.pid
        return None


def environment(folder: Path) -> dict[str, str]:
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CHATCORE_", "DJANGO_"))
    }
    return {**ours, "CHATCORE_DATA_DIR": str(folder / "var")}


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def until(true: Callable[[], object], *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if command_line(pid)]


@contextmanager
def running(folder: Path) -> Iterator[Serving]:
    server = Serving(folder)
    try:
        assert until(
            lambda: LINK.search(server.printed()) or server.process.poll() is not None, seconds=120
        ), server.printed()
        assert until(server.lives, seconds=30), server.printed()
        yield server
    finally:
        server.process.terminate()
        server.process.wait(60)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One for all tests that leave it alive."""
    with running(tmp_path_factory.mktemp("serve")) as server:
        yield server


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Serving]:
    """One for a test that ends it, with all its processes up."""
    with running(tmp_path) as server:
        assert until(lambda: len(list_descendants(server.process.pid)) > 3, seconds=60)
        yield server


def test_it_prints_one_link_that_signs_the_first_user_in_once(serving: Serving) -> None:
    links = LINK.findall(serving.printed())
    assert len(links) == 1
    with (
        httpx2.Client(base_url=serving.url) as first,
        httpx2.Client(base_url=serving.url) as second,
    ):
        first.get(links[0], follow_redirects=True)
        assert first.get("/settings/").status_code == 200
        second.get(links[0], follow_redirects=True)
        assert second.get("/settings/").status_code == 302


@pytest.mark.parametrize("words", ["uvicorn", "chatcore worker"])
def test_a_killed_child_comes_back(serving: Serving, words: str) -> None:
    assert until(lambda: serving.child(words), seconds=60)
    killed = serving.child(words)
    assert killed
    os.kill(killed, signal.SIGKILL)
    assert until(lambda: serving.child(words) not in (None, killed), seconds=60), serving.printed()
    assert until(serving.lives, seconds=60)
    assert "SIGKILL" in serving.printed()
    assert len(LINK.findall(serving.printed())) == 1


def test_a_web_server_that_hangs_is_replaced(serving: Serving) -> None:
    hung = serving.child("uvicorn")
    assert hung
    os.kill(hung, signal.SIGSTOP)
    assert until(lambda: serving.child("uvicorn") not in (None, hung), seconds=150), (
        serving.printed()
    )
    assert until(serving.lives, seconds=60)
    assert "does not answer any more" in serving.printed()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_of_it(doomed: Serving, number: signal.Signals) -> None:
    everyone = [process.pid for process in list_descendants(doomed.process.pid)]
    doomed.process.send_signal(number)
    assert doomed.process.wait(60) == 0
    assert until(lambda: not alive(everyone), seconds=15), [
        command_line(pid) for pid in alive(everyone)
    ]


def test_a_killed_supervisor_leaves_no_orphan(doomed: Serving) -> None:
    everyone = [process.pid for process in list_descendants(doomed.process.pid)]
    doomed.process.kill()
    assert until(lambda: not alive(everyone), seconds=30), [
        command_line(pid) for pid in alive(everyone)
    ]


def test_a_taken_port_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "chatcore", "serve", "--port", str(port)]
        result = subprocess.run(
            command,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert result.returncode == 2
    assert (
        result.stderr
        == f"CommandError: Cannot listen on 127.0.0.1 port {port}: it is taken. Choose another with --port.\n"
    )

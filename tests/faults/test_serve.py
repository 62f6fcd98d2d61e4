"""`chatcore serve`: one process that starts everything, keeps it alive and takes all of it away."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from chatcore.local_model.server import find_free_port
from compaction.worker.processes import list_descendants
from tests.support.prepared_database import put_database
from tests.support.waiting import wait_until

pytestmark = pytest.mark.faults
WEB_SERVER = "chatcore.serving.web_server"
LINK = re.compile(r"http://127\.0\.0\.1:\d+(/login/once/[^/\s]+/)")


class Serving:
    """A running `chatcore serve --no-local-model` over a data folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.port = find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.output = folder / "output"
        put_database(folder / "var")
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
                env=build_environment(folder),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def read_output(self) -> str:
        return self.output.read_text()

    def is_live(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/livez", timeout=2).status_code == 200
        except httpx2.HTTPError:
            return False

    def find_child(self, words: str) -> int | None:
        """The pid of the supervisor's own child with `words` in its command line."""
        for process in list_descendants(self.process.pid):
            if process.parent == self.process.pid and words in read_command_line(process.pid):
                return process.pid
        return None


def build_environment(folder: Path) -> dict[str, str]:
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CHATCORE_", "DJANGO_"))
    }
    return {**ours, "CHATCORE_DATA_DIR": str(folder / "var")}


def read_command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def list_alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if read_command_line(pid)]


@contextmanager
def run_server(folder: Path) -> Iterator[Serving]:
    server = Serving(folder)
    try:
        (
            wait_until(
                lambda: LINK.search(server.read_output()) or server.process.poll() is not None,
                seconds=120,
            ),
            server.read_output(),
        )
        wait_until(server.is_live, seconds=60), server.read_output()
        yield server
    finally:
        server.process.terminate()
        server.process.wait(60)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One for all tests that leave it alive."""
    with run_server(tmp_path_factory.mktemp("serve")) as server:
        yield server


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Serving]:
    """One for a test that ends it, with all its processes up."""
    with run_server(tmp_path) as server:
        wait_until(lambda: len(list_descendants(server.process.pid)) > 3, seconds=60)
        yield server


def test_it_prints_one_link_that_signs_the_first_user_in_once(serving: Serving) -> None:
    links = LINK.findall(serving.read_output())
    assert len(links) == 1
    with (
        httpx2.Client(base_url=serving.url) as first,
        httpx2.Client(base_url=serving.url) as second,
    ):
        by_hand = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
        first.get(links[0], headers=by_hand, follow_redirects=True)
        assert first.get("/settings/").status_code == 200
        second.get(links[0], headers=by_hand, follow_redirects=True)
        assert second.get("/settings/").status_code == 302


@pytest.mark.parametrize("words", [WEB_SERVER, "chatcore worker"])
def test_a_killed_child_comes_back(serving: Serving, words: str) -> None:
    wait_until(lambda: serving.find_child(words), seconds=60)
    killed_pid = serving.find_child(words)
    assert killed_pid
    os.kill(killed_pid, signal.SIGKILL)
    (
        wait_until(lambda: serving.find_child(words) not in (None, killed_pid), seconds=60),
        (serving.read_output()),
    )
    wait_until(serving.is_live, seconds=60)
    assert "SIGKILL" in serving.read_output()
    assert len(LINK.findall(serving.read_output())) == 1


@pytest.mark.lasting
def test_a_web_server_that_hangs_is_replaced(serving: Serving) -> None:
    hung_pid = serving.find_child(WEB_SERVER)
    assert hung_pid
    os.kill(hung_pid, signal.SIGSTOP)
    (
        wait_until(lambda: serving.find_child(WEB_SERVER) not in (None, hung_pid), seconds=150),
        serving.read_output(),
    )
    wait_until(serving.is_live, seconds=60)
    assert "does not answer any more" in serving.read_output()


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_stops_all_of_it(doomed: Serving, number: signal.Signals) -> None:
    pids = [process.pid for process in list_descendants(doomed.process.pid)]
    doomed.process.send_signal(number)
    assert doomed.process.wait(60) == 0
    (
        wait_until(lambda: not list_alive(pids), seconds=60),
        [read_command_line(pid) for pid in list_alive(pids)],
    )


def test_a_killed_supervisor_leaves_no_orphan(doomed: Serving) -> None:
    pids = [process.pid for process in list_descendants(doomed.process.pid)]
    doomed.process.kill()
    (
        wait_until(lambda: not list_alive(pids), seconds=60),
        [read_command_line(pid) for pid in list_alive(pids)],
    )


def test_a_taken_port_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [sys.executable, "-m", "chatcore", "serve", "--port", str(port)]
        result = subprocess.run(
            command,
            env=build_environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert result.returncode == 2
    assert result.stderr == (
        f"CommandError: Cannot listen on 127.0.0.1 port {port}: it is taken."
        " Choose another with --port.\n"
    )


@pytest.mark.parametrize("option", ["--web", "--workers"])
def test_no_processes_of_a_kind_is_one_sentence_and_exit_code_2(
    tmp_path: Path, option: str
) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "chatcore", "serve", option, "0"],
        env=build_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.startswith(f"CommandError: {option} is 0; it must be ")

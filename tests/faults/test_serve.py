"""`chatcore serve`: one process that starts everything, keeps it alive and takes all of it away."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest
from django.core.management import CommandError, call_command

from chatcore.web.templatetags.scripts import PARTS
from tests.support.held_port import hold_port
from tests.support.prepared_database import put_database
from tests.support.waiting import PATIENCE_SECONDS, wait_until
from tests.support.web_process import build_environment
from tests.support.worker_processes import is_living, list_living, read_name

pytestmark = pytest.mark.faults
WEB_SERVER = "chatcore.serving.web_server"
WORKER = "chatcore worker"
LINK = re.compile(r"http://127\.0\.0\.1:\d+(/login/once/[^/\s]+/)")


class Serving:
    """A running `chatcore serve --no-local-model` over a data folder of its own."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.output = folder / "output"
        put_database(folder / "var")
        command = [sys.executable, "-m", "chatcore", "serve", "--no-local-model", "--workers", "1"]
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [*command, "--port", str(port)],
                env=build_environment(folder / "var"),
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
        for child in psutil.Process(self.process.pid).children():
            if words in read_name(child.pid):
                return int(child.pid)
        return None

    def hurt(self, words: str, number: signal.Signals) -> None:
        """Send a signal to a child, and wait until another one has taken its place."""
        pid = self.find_child(words)
        assert pid
        os.kill(pid, number)
        # A process that hangs is asked several times before it is given up.
        wait_until(lambda: self.find_child(words) not in (None, pid), seconds=180, what=words)
        wait_until(self.is_live, what="the web server")


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """One with all its processes up."""
    with hold_port() as port:
        server = Serving(tmp_path, port)
        has_ended = lambda: server.process.poll() is not None  # noqa: E731
        try:
            wait_until(lambda: LINK.search(server.read_output()) or has_ended(), what="the link")
            assert not has_ended(), server.read_output()
            wait_until(server.is_live, what="the web server")
            wait_until(lambda: server.find_child(WORKER), what="the worker")
            yield server
        finally:
            server.process.terminate()
            server.process.wait(60)


@pytest.mark.lasting
def test_what_dies_or_hangs_is_replaced_and_a_signal_stops_all(serving: Serving) -> None:
    check_link(serving)
    check_static_files(serving)
    serving.hurt(WEB_SERVER, signal.SIGKILL)
    serving.hurt(WORKER, signal.SIGKILL)
    assert serving.read_output().count("SIGKILL") == 2
    serving.hurt(WEB_SERVER, signal.SIGSTOP)
    assert "does not answer any more" in serving.read_output()
    assert len(LINK.findall(serving.read_output())) == 1
    check_renewal(serving)
    check_end(serving, signal.SIGTERM)


def check_renewal(serving: Serving) -> None:
    """HUP puts another web process into service, and nobody is refused meanwhile."""
    old = serving.find_child(WEB_SERVER)
    serving.process.send_signal(signal.SIGHUP)
    answers: list[int] = []
    while len(answers) < 5 or serving.find_child(WEB_SERVER) == old:
        answers.append(httpx2.get(f"{serving.url}/livez", timeout=PATIENCE_SECONDS).status_code)
        assert len(answers) < 100_000, "the web process was not renewed"
    assert set(answers) == {200}


def check_link(serving: Serving) -> None:
    """The printed link signs in whoever opens it first, and nobody after that."""
    (link,) = LINK.findall(serving.read_output())
    by_hand = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
    for status in (200, 302):
        with httpx2.Client(base_url=serving.url, timeout=PATIENCE_SECONDS) as client:
            client.get(link, headers=by_hand, follow_redirects=True)
            assert client.get("/settings/").status_code == status


def check_static_files(serving: Serving) -> None:
    """What pages load is compressed, and kept for good: its name has a hash."""
    page = httpx2.get(f"{serving.url}/login/", timeout=PATIENCE_SECONDS)
    assert page.headers["Content-Encoding"] == "gzip"
    (style,) = re.findall(r'"(/static/chatcore/built/card\.[0-9a-f]{12}\.css)"', page.text)
    part = PARTS["chat.js"][0]
    for path in (style, f"/static/chatcore/built/{part}"):
        headers = httpx2.get(serving.url + path, timeout=PATIENCE_SECONDS).headers
        assert headers["Content-Encoding"] == "gzip", path
        assert "immutable" in headers["Cache-Control"], path


def check_end(serving: Serving, number: signal.Signals) -> None:
    """A signal ends the command calmly, and none of its processes is left."""
    processes = list_living(serving.process.pid)
    serving.process.send_signal(number)
    assert serving.process.wait(PATIENCE_SECONDS) == (-number if number == signal.SIGKILL else 0)
    wait_until(lambda: not any(map(is_living, processes)), what="the end of all processes")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_it(serving: Serving, number: signal.Signals) -> None:
    check_end(serving, number)


def test_a_taken_port_is_one_sentence_and_exit_code_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        sentence = f"Cannot listen on 127.0.0.1 port {port}: it is taken. Choose another"
        with pytest.raises(CommandError, match=re.escape(sentence)) as refusal:
            call_command("serve", port=port)
    assert refusal.value.returncode == 2


@pytest.mark.parametrize("option", ["web", "workers"])
def test_no_processes_of_a_kind_is_one_sentence_and_exit_code_2(option: str) -> None:
    with hold_port() as port, pytest.raises(CommandError, match=f"--{option} is 0; it") as refusal:
        call_command("serve", port=port, **{option: 0})
    assert refusal.value.returncode == 2

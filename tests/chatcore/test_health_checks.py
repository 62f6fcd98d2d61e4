"""A process that does not answer is hung if it does nothing; a busy one is given a minute."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chatcore.serving import health
from chatcore.serving.health import HealthAddress, wait_until_hung

# Answers once, and then does what it is told, with its socket open.
SERVER = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
client, _ = server.accept()
client.recv(1000)
client.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
client.close()
while True:
    if sys.argv[1] == "idle":
        time.sleep(1)
"""


@pytest.fixture(autouse=True)
def short_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check so often that a test need not wait a minute; the shares of time are the real ones."""
    monkeypatch.setattr(health, "CHECK_INTERVAL_SECONDS", 0.5)
    monkeypatch.setattr(health, "ANSWER_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(health, "BUSY_CPU_SECONDS", 0.01)


@contextmanager
def run_server(conduct: str) -> Iterator[tuple[int, HealthAddress]]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, conduct], stdout=subprocess.PIPE)
    assert process.stdout
    try:
        port = int(process.stdout.readline())
        yield process.pid, HealthAddress(host="127.0.0.1", port=port, path="/livez")
    finally:
        process.kill()
        process.wait()


async def watch(pid: int, address: HealthAddress) -> None:
    await wait_until_hung(address, pid=pid, startup_seconds=20, on_answer=lambda: None)


def test_a_process_that_does_nothing_is_hung_after_three_checks() -> None:
    with run_server("idle") as (pid, address):
        asyncio.run(watch(pid, address))


def test_a_busy_process_is_not_hung_until_it_was_silent_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Many more checks than the three, all of which fail.
    with run_server("busy") as (pid, address), pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(watch(pid, address), 8))
    with run_server("busy") as (pid, address):
        monkeypatch.setattr(health, "LONGEST_SILENCE_SECONDS", 3.0)
        asyncio.run(watch(pid, address))

"""A process that is stopped or hangs is replaced, also where nothing can be asked of it."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from pytest_django import DjangoDbBlocker

from tests.support.waiting import wait_until
from tests.support.worker_processes import ROOT, build_environment, open_database

pytestmark = pytest.mark.faults

PARENT = """
import sys
from chatcore.serving import parent
parent.LOOK_INTERVAL = parent.LONGEST_STOP = 0.2
program = parent.Program(name="worker", command={command!r}, is_web={is_web})
plan = parent.Plan(programs=[program], socket=int(sys.argv[1]), welcome="Up.")
parent.Parent(plan).run()
"""
# The first process stops itself; those after it go on.
STOPPED = """
import os, signal, sys
log = open(sys.argv[1], "a")
print("start", file=log, flush=True)
if open(sys.argv[1]).read().count("start") == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
signal.pause()
"""
# A web process whose event loop stands still at a request for /hang.
HUNG_LOOP = """
import os, socket, sys, time
import uvicorn
from chatcore.serving import draining
draining.SILENCE_SECONDS = 5
draining.TICKS_BETWEEN_SIGNS = 1
async def serve(scope, receive, send):
    if scope["path"] == "/hang":
        time.sleep(600)
    if scope["path"] == "/busy":
        end = time.process_time() + 1
        while time.process_time() < end:
            pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
config = uvicorn.Config(serve, lifespan="off", log_level="warning")
server = draining.DrainingServer(config, drain_seconds=0, ready=int(sys.argv[2]))
server.run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""
# A worker command whose first check never ends.
HUNG_WORKER = """
import time
from compaction.runs import worker as cluster
from django.core.management import call_command
cluster.SILENCE_SECONDS = 1
cluster.requeue_abandoned_runs = lambda cluster: time.sleep(600)
call_command("worker", "--workers", "1")
"""


def test_a_stopped_program_is_replaced(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    output = tmp_path / "output"
    with run_parent(output, STOPPED, str(log)) as parent:
        wait_until(lambda: log.read_text().count("start") == 2, what="the second process")
        parent.terminate()
        parent.wait(60)
    lines = output.read_text().splitlines()
    assert lines[0] == "The worker does not answer any more; starting it again in 1 s."


@pytest.mark.slow
def test_a_web_process_whose_loop_hangs_ends_itself_and_is_replaced(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        with run_parent(output, HUNG_LOOP, is_web=True, listener=listener) as parent:
            wait_until(lambda: "Up." in output.read_text(), what="the first process")
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            pids = [httpx2.get(f"{address}{path}", timeout=60).text for path in ("/", "/busy", "/")]
            assert len(set(pids)) == 1, "a busy one goes on"
            with pytest.raises(httpx2.HTTPError):
                httpx2.get(f"{address}/hang", timeout=60)
            assert httpx2.get(address, timeout=60).text not in pids
            parent.terminate()
            parent.wait(60)
    said = output.read_text()
    assert "The worker ended (exit code 1); starting it again in 1 s." in said
    assert "time.sleep(600)" in said or "in serve" in said, "it says where it hung"


@contextmanager
def run_parent(
    output: Path,
    program: str,
    *arguments: str,
    is_web: bool = False,
    listener: socket.socket | None = None,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a parent of one program, whose patience is short. Both write to `output`."""
    number = listener.fileno() if listener else 0
    code = PARENT.format(command=[sys.executable, "-c", program, *arguments], is_web=is_web)
    with output.open("w") as file:
        parent = subprocess.Popen(
            [sys.executable, "-c", code, str(number)],
            cwd=ROOT,
            stdout=file,
            stderr=file,
            pass_fds=[number] if listener else [],
        )
        try:
            yield parent
        finally:
            parent.kill()
            parent.wait()


def test_a_worker_command_that_hangs_ends_itself(
    tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    with django_db_blocker.unblock(), open_database("sqlite", tmp_path) as url:
        process = subprocess.run(
            [sys.executable, "manage.py", "shell", "-c", HUNG_WORKER],
            env=build_environment(url, tmp_path),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert process.returncode == 1
    assert "_watch" in process.stderr, "it says where it hung"

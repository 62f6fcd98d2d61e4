"""A process that is stopped or hangs is replaced, also where nothing can be asked of it."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from chatcore.serving import health
from chatcore.serving.supervisor import ChildProcess, supervise_children
from tests.support.waiting import wait_until
from tests.support.worker_processes import ROOT, build_environment, open_database

pytestmark = pytest.mark.faults

# The first process stops itself; those after it go on.
PROGRAM = """
import os, signal, sys
log = open(sys.argv[1], "a")
print("start", file=log, flush=True)
if open(sys.argv[1]).read().count("start") == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
signal.pause()
"""
# A worker command whose first check never ends.
HUNG_WORKER = """
import time
from compaction.worker import cluster
from django.core.management import call_command
cluster.SILENCE_SECONDS = 1
cluster.requeue_abandoned_runs = lambda cluster: time.sleep(600)
call_command("worker", "--workers", "1")
"""


async def test_a_stopped_child_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CHECK_INTERVAL_SECONDS", 0.1)
    log = tmp_path / "log"
    log.touch()
    lines: list[str] = []
    child = ChildProcess(name="worker", command=[sys.executable, "-c", PROGRAM, str(log)])
    supervising = asyncio.create_task(supervise_children([child], print_line=lines.append))
    await asyncio.to_thread(
        wait_until, lambda: log.read_text().count("start") == 2, what="the second process"
    )
    supervising.cancel()
    await asyncio.gather(supervising, return_exceptions=True)
    assert lines == ["The worker does not answer any more; starting it again in 1 s."]


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

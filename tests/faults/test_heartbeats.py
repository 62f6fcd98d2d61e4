"""A worker command that hangs is started again, because it is silent."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from chatcore.serving.heartbeats import PIPE_VARIABLE
from chatcore.serving.supervisor import ChildProcess, supervise_children
from compaction.worker import heartbeat
from tests.support.database import build_database_url
from tests.support.waiting import wait_until
from tests.support.worker_processes import ROOT

pytestmark = pytest.mark.faults

SILENCE_SECONDS = 4.0
BEATS = 30  # for longer than SILENCE_SECONDS, however slow the machine is
# The first process is heard three times and then hangs; those after it go on.
PROGRAM = """
import os, select, signal, sys
log = open(sys.argv[1], "a")
print("start", file=log, flush=True)
is_first = open(sys.argv[1]).read().count("start") == 1
pipe = int(os.environ[sys.argv[2]])
for _ in range(3 if is_first else 10_000):
    os.write(pipe, b".")
    print("beat", file=log, flush=True)
    select.select([], [], [], 0.2)
signal.pause()
"""


async def test_a_silent_child_is_replaced_and_one_that_is_heard_is_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    lines: list[str] = []
    child = ChildProcess(
        name="worker",
        command=[sys.executable, "-c", PROGRAM, str(log), PIPE_VARIABLE],
        silence_seconds=SILENCE_SECONDS,
    )
    supervising = asyncio.create_task(supervise_children([child], print_line=lines.append))
    await asyncio.to_thread(
        wait_until, lambda: log.read_text().count("beat") > 3 + BEATS, what="the second process"
    )
    supervising.cancel()
    await asyncio.gather(supervising, return_exceptions=True)
    assert log.read_text().count("start") == 2, "the second one was heard all the time"
    assert lines == ["The worker does not answer any more; starting it again in 1 s."]


@pytest.mark.django_db(transaction=True)
def test_the_worker_command_is_heard_until_it_hangs(tmp_path: Path) -> None:
    assert heartbeat.PIPE_VARIABLE == PIPE_VARIABLE
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    environment = os.environ | {
        PIPE_VARIABLE: str(writer),
        "DJANGO_SETTINGS_MODULE": "chatcore.settings",
        "CHATCORE_DATA_DIR": str(tmp_path),
        "CHATCORE_DATABASE_URL": build_database_url(),
        "CHATCORE_SECRET_KEY": settings.SECRET_KEY,
        "CHATCORE_KEY_ENCRYPTION_KEYS": ",".join(settings.CHATCORE["KEY_ENCRYPTION_KEYS"]),
    }
    command = [sys.executable, str(ROOT / "manage.py"), "worker", "--workers", "1"]
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=ROOT,
        pass_fds=[writer],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def is_heard() -> bool:
        try:
            return bool(os.read(reader, 4096))
        except BlockingIOError:
            return False

    try:
        for _ in range(3):
            wait_until(is_heard)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        is_heard()  # what it said before
        assert not is_heard()
        process.send_signal(signal.SIGCONT)
        wait_until(is_heard)
    finally:
        process.terminate()
        process.wait(60)
        os.close(reader)
        os.close(writer)

"""Ask a process over HTTP whether it still answers."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

CHECK_INTERVAL_SECONDS = 5.0
STARTUP_INTERVAL_SECONDS = 0.2
ANSWER_TIMEOUT_SECONDS = 5.0
MAX_FAILURES = 3  # in a row
BUSY_CPU_SECONDS = 0.1  # between two checks; a process that took so much is busy, and not hung
LONGEST_SILENCE_SECONDS = 60.0  # of a busy one


@dataclass(frozen=True, kw_only=True)
class HealthAddress:
    """The address of a process's health check, over plain HTTP."""

    host: str
    port: int
    path: str


async def wait_until_hung(
    address: HealthAddress | None,
    *,
    pid: int,
    startup_seconds: float,
    on_answer: Callable[[], None],
) -> None:
    """Return when the process at `address` is hung; call `on_answer` at its first answer.

    It is hung if it gives no first answer within `startup_seconds`, or later fails MAX_FAILURES
    checks in a row without having worked meanwhile, or fails them for LONGEST_SILENCE_SECONDS.
    One without an address counts as hung when it is stopped; any other hang it must notice itself.
    """
    if address is None:
        await _wait_until_stopped(pid)
        return
    deadline = time.monotonic() + startup_seconds
    while not await is_answering(address):
        if time.monotonic() > deadline:
            return
        await asyncio.sleep(STARTUP_INTERVAL_SECONDS)
    on_answer()
    failure_count = 0
    last_answer = time.monotonic()
    while failure_count < MAX_FAILURES and time.monotonic() - last_answer < LONGEST_SILENCE_SECONDS:
        cpu_seconds = _read_cpu_seconds(pid)
        await asyncio.sleep(CHECK_INTERVAL_SECONDS)
        if await is_answering(address):
            failure_count = 0
            last_answer = time.monotonic()
        elif _read_cpu_seconds(pid) - cpu_seconds < BUSY_CPU_SECONDS:
            failure_count += 1


async def _wait_until_stopped(pid: int) -> None:
    stopped_checks = 0
    while stopped_checks < MAX_FAILURES:
        await asyncio.sleep(CHECK_INTERVAL_SECONDS)
        stopped_checks = stopped_checks + 1 if _is_stopped(pid) else 0


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    return False


def _read_cpu_seconds(pid: int) -> float:
    """Return what the process has used of a processor so far; 0 where only Linux would know."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def is_answering(address: HealthAddress) -> bool:
    """Return whether a status below 500 comes back within ANSWER_TIMEOUT_SECONDS.

    A 400 counts as an answer: the web server refuses host names that it does not know, and that
    shows that it is alive.
    """
    try:
        return await asyncio.wait_for(_fetch_status(address), ANSWER_TIMEOUT_SECONDS) < 500
    except (OSError, ValueError, TimeoutError):
        return False


async def _fetch_status(address: HealthAddress) -> int:
    # One status line needs no HTTP client, with its connection pool and retries.
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        request = f"GET {address.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        status_line = await reader.readline()
        return int(status_line.split()[1]) if status_line.count(b" ") else 0
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

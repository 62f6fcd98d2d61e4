"""Ask a process over HTTP whether it still answers."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

CHECK_INTERVAL_SECONDS = 5.0
STARTUP_INTERVAL_SECONDS = 0.2
ANSWER_TIMEOUT_SECONDS = 5.0
MAX_FAILURES = 3  # in a row


@dataclass(frozen=True, kw_only=True)
class HealthAddress:
    """The address of a process's health check, over plain HTTP."""

    host: str
    port: int
    path: str


async def wait_until_hung(
    address: HealthAddress | None, *, startup_seconds: float, on_answer: Callable[[], None]
) -> None:
    """Return when the process at `address` is hung; call `on_answer` at its first answer.

    It is hung if it gives no first answer within `startup_seconds`, or later fails MAX_FAILURES
    checks in a row. Without an address nothing can be checked, and the function never returns.
    """
    if address is None:
        await asyncio.Event().wait()
        return
    deadline = time.monotonic() + startup_seconds
    while not await is_answering(address):
        if time.monotonic() > deadline:
            return
        await asyncio.sleep(STARTUP_INTERVAL_SECONDS)
    on_answer()
    failure_count = 0
    while failure_count < MAX_FAILURES:
        await asyncio.sleep(CHECK_INTERVAL_SECONDS)
        failure_count = 0 if await is_answering(address) else failure_count + 1


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

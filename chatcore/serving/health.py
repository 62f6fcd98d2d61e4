"""Whether a process still answers over HTTP, asked from outside it."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

INTERVAL, STARTING_INTERVAL, TIMEOUT, STRIKES = 5.0, 0.2, 5.0, 3  # seconds, and failures in a row


@dataclass(frozen=True, kw_only=True)
class HealthAddress:
    """Where to ask."""

    host: str
    port: int
    path: str


async def wait_until_hung(
    address: HealthAddress | None, *, startup_seconds: float, on_answer: Callable[[], None]
) -> None:
    """Return when the process is hung: no first answer within `patience` seconds, or STRIKES failures in a row after it."""
    if address is None:
        await asyncio.Event().wait()
        return
    deadline = time.monotonic() + startup_seconds
    while not await is_answering(address):
        if time.monotonic() > deadline:
            return
        await asyncio.sleep(STARTING_INTERVAL)
    on_answer()
    strikes = 0
    while strikes < STRIKES:
        await asyncio.sleep(INTERVAL)
        strikes = 0 if await is_answering(address) else strikes + 1


async def is_answering(address: HealthAddress) -> bool:
    """Whether anything below 500 comes back in time: a 400 for an unknown host name is still an answer."""
    try:
        return await asyncio.wait_for(_fetch_status(address), TIMEOUT) < 500
    except (OSError, ValueError, TimeoutError):
        return False


async def _fetch_status(address: HealthAddress) -> int:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        writer.write(
            f"GET {address.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
        )
        line = await reader.readline()
        return int(line.split()[1]) if line.count(b" ") else 0
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

"""Connect to a host by whichever of its addresses answers first (RFC 8305)."""

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from typing import Any

ATTEMPT_DELAY_SECONDS = 0.25  # as the RFC recommends

_AddressInfo = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]


async def open_socket(host: str, port: int) -> socket.socket:
    """Return a connected socket. Raises the OSError of the last address that failed."""
    loop = asyncio.get_running_loop()
    addresses = order_addresses(
        await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    )
    if len(addresses) == 1:
        return await _connect(addresses[0])
    error: BaseException = OSError(f"{host} has no address.")
    attempts: set[asyncio.Task[socket.socket]] = set()
    try:
        while addresses or attempts:
            if addresses:
                attempts.add(asyncio.create_task(_connect(addresses.popleft())))
            ended_attempts, attempts = await asyncio.wait(
                attempts,
                timeout=ATTEMPT_DELAY_SECONDS if addresses else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for attempt in ended_attempts:
                failure = attempt.exception()
                if failure is None:
                    attempts |= ended_attempts - {attempt}
                    return attempt.result()
                error = failure
        raise error
    finally:
        for attempt in attempts:
            attempt.cancel()
            attempt.add_done_callback(_close_late_socket)


def order_addresses(addresses: Sequence[_AddressInfo]) -> deque[_AddressInfo]:
    """Return the addresses in their order, but the second is of the other family if there is one.

    Where one of IPv4 and IPv6 does not work, it would not help to try all its addresses first.
    """
    queue = deque(addresses)
    for address in addresses:
        if address[0] != addresses[0][0]:
            queue.remove(address)
            queue.insert(1, address)
            break
    return queue


async def _connect(address: _AddressInfo) -> socket.socket:
    family, kind, protocol, _name, destination = address
    connection = socket.socket(family, kind, protocol)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connection, destination)
    except BaseException:
        connection.close()
        raise
    return connection


def _close_late_socket(attempt: asyncio.Task[socket.socket]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()

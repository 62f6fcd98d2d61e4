"""A host is reached by whichever of its addresses answers."""

import asyncio
import socket
from typing import Any

import pytest

from chatcore.providers.happy_eyeballs import open_socket, order_addresses

pytestmark = pytest.mark.asyncio
HOST = "provider.example"
# Routers drop what is sent to it (RFC 5737), so a connection is never made and never refused.
SILENT_ADDRESS = "192.0.2.1"


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: Any) -> None:
    """Let HOST have these addresses; uvloop also asks for the addresses of addresses."""
    loop = asyncio.get_running_loop()
    get_addresses = loop.getaddrinfo

    async def resolve(host: Any, *args: Any, **options: Any) -> list[Any]:
        return list(addresses) if host == HOST else await get_addresses(host, *args, **options)

    monkeypatch.setattr(loop, "getaddrinfo", resolve)


def make_address(destination: tuple[Any, ...], family: int = socket.AF_INET) -> Any:
    return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", destination


@pytest.fixture
def listening_port() -> Any:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def refusing_port() -> Any:
    with socket.socket() as blocked_socket:
        blocked_socket.bind(("127.0.0.1", 0))
        yield blocked_socket.getsockname()[1]


async def test_the_next_address_is_tried_at_once_when_one_refuses(
    monkeypatch: pytest.MonkeyPatch, refusing_port: int, listening_port: int
) -> None:
    resolve_to(
        monkeypatch,
        make_address(("127.0.0.1", refusing_port)),
        make_address(("127.0.0.1", listening_port)),
    )
    with await open_socket(HOST, 443) as connection:
        assert connection.getpeername() == ("127.0.0.1", listening_port)


async def test_the_next_address_is_tried_soon_when_one_is_silent(
    monkeypatch: pytest.MonkeyPatch, listening_port: int
) -> None:
    resolve_to(
        monkeypatch,
        make_address((SILENT_ADDRESS, 9)),
        make_address(("127.0.0.1", listening_port)),
    )
    async with asyncio.timeout(10):
        with await open_socket(HOST, 443) as connection:
            assert connection.getpeername() == ("127.0.0.1", listening_port)


async def test_an_error_is_raised_when_all_addresses_refuse(
    monkeypatch: pytest.MonkeyPatch, refusing_port: int
) -> None:
    resolve_to(monkeypatch, *[make_address(("127.0.0.1", refusing_port))] * 3)
    with pytest.raises(ConnectionRefusedError):
        await open_socket(HOST, 443)


async def test_the_second_address_is_of_the_other_family() -> None:
    first, second = (make_address((SILENT_ADDRESS, port)) for port in (1, 2))
    other_family = make_address(("2001:db8::1", 1, 0, 0), socket.AF_INET6)
    assert list(order_addresses([first, second, other_family])) == [first, other_family, second]
    assert list(order_addresses([first, second])) == [first, second]
    assert list(order_addresses([])) == []

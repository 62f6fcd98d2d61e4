"""Connections to a provider: used again, given up, and read as HTTP/1.1 says, on real sockets."""

import asyncio
import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from chatcore.providers import http_clients
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import Connection
from chatcore.providers.errors import ProviderUnavailable
from chatcore.providers.openai import stream_answer
from tests.support.provider_calls import (
    PROTOCOLS,
    build_connection,
    catch_error,
    collect_parts,
    join_text,
    make_request,
)
from tests.support.raw_servers import CHUNKED, OK, answer_with, serve
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import PATIENCE_SECONDS, let_the_loop_turn


@pytest.fixture(autouse=True, params=[True, False], ids=["aiohttp", "httpx2"])
def http_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A large installation, and one without the extra fast."""
    monkeypatch.setattr(http_clients, "USES_AIOHTTP", request.param)
    http_clients._get_client_class.cache_clear()
    yield
    http_clients._get_client_class.cache_clear()


async def read_answer(address: str, *, key: str = "k") -> bytes:
    """Return the body of the provider's answer to anything, byte for byte."""
    connection = Connection(
        protocol="openai", base_url=address, api_key=key, timeout_seconds=10, max_retries=0
    )
    return b"".join([chunk async for chunk in stream_answer(connection, "completions", {})])


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_next_answer_comes_over_the_same_connection(
    protocol: str, scripted: ScriptedModel
) -> None:
    for _ in range(3):
        await collect_parts(build_connection(scripted, protocol))
    assert len({request.client_port for request in scripted.requests}) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_answers_at_the_same_time_have_a_connection_each(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(text="Hello.", delay=0.2)
    connection = build_connection(scripted, protocol)
    answers = await asyncio.gather(*(collect_parts(connection) for _ in range(3)))
    assert [join_text(parts) for parts in answers] == ["Hello."] * 3
    assert len({request.client_port for request in scripted.requests}) == 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_keys_and_headers_of_one_answer_are_not_those_of_the_next(
    protocol: str, scripted: ScriptedModel
) -> None:
    options = {"headers": {"x-team": "blue"}}
    await collect_parts(build_connection(scripted, protocol, api_key="sk-one", options=options))
    await collect_parts(build_connection(scripted, protocol, api_key="sk-two"))
    first, second = (request.headers for request in scripted.requests)
    assert ("sk-one" in str(first), "sk-one" in str(second)) == (True, False)
    assert "x-team" not in second


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_stream_that_was_left_early_takes_its_connection_with_it(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["Well, ", "…"], cut_after=1, hang=True))
    async with aclosing(
        provider_registry.stream(build_connection(scripted, protocol), make_request())
    ) as parts:
        await anext(parts)
    assert join_text(await collect_parts(build_connection(scripted, protocol)))
    assert len({request.client_port for request in scripted.requests}) == 2


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again(
    scripted: ScriptedModel,
) -> None:
    connection = build_connection(scripted, "openai")
    await collect_parts(connection)
    scripted._server.close_connections()
    await let_the_loop_turn(5)  # enough to see the end of a connection on this machine
    assert join_text(await collect_parts(connection))
    assert len({request.client_port for request in scripted.requests}) == 2


async def test_a_request_that_crosses_the_closing_of_its_connection_is_sent_once_more() -> None:
    connection_count = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connection_count
        connection_count += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Content-Length: 2\r\n\r\nhi")
        # The second request of a connection arrives, and is never answered.
        await reader.readuntil(b"\r\n\r\n")

    async with serve(answer) as address:
        assert await read_answer(address) == b"hi"
        assert await read_answer(address) == b"hi"
    assert connection_count == 2


async def test_connections_that_are_closed_without_a_response_are_an_error() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with serve(answer) as address:
        with pytest.raises(ProviderUnavailable, match="broke the connection"):
            await read_answer(address)


async def test_no_answer_waits_for_the_connection_of_another() -> None:
    """HTTP clients have limits: 100 or 1,000 connections where nobody says otherwise."""
    answer_count = 120
    requests = asyncio.Barrier(answer_count)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await requests.wait()
        writer.write(OK + b"Content-Length: 2\r\n\r\nhi")
        await writer.drain()

    async with serve(answer) as address:
        await asyncio.gather(*(read_answer(address) for _ in range(answer_count)))


async def test_a_cookie_is_sent_with_the_key_that_it_was_given_to_only() -> None:
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK + b"Set-Cookie: seat=one\r\nContent-Length: 2\r\n\r\nhi")

    async with serve(answer) as address:
        named_address = address.replace("127.0.0.1", "localhost")  # an address has no cookies
        await read_answer(named_address, key="sk-one")
        await read_answer(named_address, key="sk-two")
    assert [b"seat=one" in head for head in heads] == [False, False]


@pytest.mark.slow
def test_the_end_of_an_event_loop_closes_its_connections(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def call() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await collect_parts(connection)

    with ScriptedModel() as scripted:
        connection = build_connection(scripted, "openai")
        asyncio.run(call())
        asyncio.run(call())
        first, second = scripted.requests
        assert first.client_port != second.client_port
    gc.collect()
    assert [loop() for loop in loops] == [None, None]
    assert "Unclosed" not in caplog.text


LASTING_LOOP = """
import asyncio, sys, threading
import django, uvloop
from chatcore.providers.base import Connection
from chatcore.providers.openai import stream_answer

django.setup()

async def call():
    connection = Connection(protocol="openai", base_url=sys.argv[1], api_key="k")
    print(len([chunk async for chunk in stream_answer(connection, "chat/completions", {})]) > 0)

loop = uvloop.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
asyncio.run_coroutine_threadsafe(call(), loop).result()
"""


@pytest.mark.slow
def test_the_end_of_a_process_closes_the_connections_of_a_loop_that_lasts_until_then() -> None:
    with ScriptedModel() as scripted:
        program = subprocess.run(
            [sys.executable, "-c", LASTING_LOOP, scripted.base_url],
            capture_output=True,
            text=True,
            env=os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"},
            timeout=PATIENCE_SECONDS,
        )
    assert (program.stdout, program.stderr) == ("True\n", "")


@pytest.mark.parametrize(
    ("response", "body"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", "hello"),
        (OK + b"Content-Length: 0\r\n\r\n", ""),
        (CHUNKED + b"5\r\nhello\r\n1;extension=x\r\n!\r\n0\r\nTrailer: x\r\n\r\n", "hello!"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nhi", "hi"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ""),
        # What sloppy servers send, and other clients understand.
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", "hi"),
        (OK + b"X-Odd: \x01\r\nContent-Length: 2\r\n\r\nhi", "hi"),
    ],
)
async def test_every_kind_of_complete_response_is_read(response: bytes, body: str) -> None:
    async with serve(answer_with(response)) as address:
        assert (await read_answer(address)).decode() == body


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_a_response_without_a_length_ends_with_its_connection(version: bytes) -> None:
    response = b"HTTP/" + version + b" 200 OK\r\n\r\nhello"
    async with serve(answer_with(response, closes=True)) as address:
        assert await read_answer(address) == b"hello"


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"<html>",
        b"HTTP/1.1 200",
        OK + b"Content-Length: 5\r\n\r\nhell",
        CHUNKED + b"5\r\nhell",
        CHUNKED + b"5\r\nhello\r\n",
        CHUNKED + b"what\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ],
)
async def test_what_is_no_complete_response_is_an_error(response: bytes) -> None:
    async with serve(answer_with(response, closes=True)) as address:
        with pytest.raises(ProviderUnavailable):
            await read_answer(address)


@pytest.mark.parametrize(
    "endless_bytes",
    [b"X-Header: " + b"x" * 1000 + b"\r\n", b"x" * 1000],
    ids=["headers", "one header"],
)
async def test_headers_without_end_are_refused(endless_bytes: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"X-First: ")
        while not writer.is_closing():
            writer.write(endless_bytes)
            await writer.drain()
            await let_the_loop_turn()

    async with serve(answer) as address:
        with pytest.raises(ProviderUnavailable):
            await read_answer(address)


async def test_a_header_cannot_bring_another_one_with_it(scripted: ScriptedModel) -> None:
    options = {"headers": {"x-team": "blue\r\nx-evil: 1"}}
    error = await catch_error(build_connection(scripted, "openai", options=options))
    assert (error.type, scripted.requests) == ("provider_unavailable", [])


async def test_the_network_s_buffers_bound_what_a_reader_falls_behind() -> None:
    """A server that sends faster than the answer is stored waits; it does not fill the memory."""
    total_bytes = 32_000_000
    sent_bytes = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent_bytes
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Content-Length: %d\r\n\r\n" % total_bytes)
        while sent_bytes < total_bytes:
            writer.write(b"x" * 64_000)
            await writer.drain()
            sent_bytes += 64_000

    async with serve(answer) as address:
        connection = Connection(protocol="openai", base_url=address, api_key="k")
        async with aclosing(stream_answer(connection, "completions", {})) as chunks:
            read_bytes = len(await anext(chunks))
            before = -1
            while sent_bytes != before:
                before = sent_bytes
                await let_the_loop_turn(100)
            assert sent_bytes < 16_000_000
            async for chunk in chunks:
                read_bytes += len(chunk)
        assert read_bytes == total_bytes

"""What goes wrong inside a stream is told in words, after the text that came before it."""

import asyncio
import json
import zlib
from typing import Any

import pytest

from chatcore.providers import registry as provider_registry
from chatcore.providers.base import StreamPart
from chatcore.providers.errors import ProviderError, ProviderRateLimited, ProviderUnavailable
from tests.support.provider_calls import (
    PROTOCOLS,
    build_connection,
    collect_parts,
    join_text,
    make_request,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.parametrize("protocol", PROTOCOLS)


def encode_event(data: dict[str, Any] | str, name: str = "") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return f"event: {name}\ndata: {text}\n\n".encode() if name else f"data: {text}\n\n".encode()


def encode_text(protocol: str, text: str) -> bytes:
    """The events of a stream that has said a text and not ended."""
    if protocol == "openai":
        return encode_event({"choices": [{"index": 0, "delta": {"content": text}}]})
    block = {"type": "text", "text": ""}
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    delta = {"type": "text_delta", "text": text}
    piece = {"type": "content_block_delta", "index": 0, "delta": delta}
    return encode_event(start, "content_block_start") + encode_event(piece, "content_block_delta")


def encode_end(protocol: str) -> bytes:
    if protocol == "openai":
        choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
        return encode_event({"choices": [choice]}) + encode_event("[DONE]")
    return encode_event(
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, "message_delta"
    )


def make_reply(body: bytes, **headers: str) -> Reply:
    return Reply(body=body, headers={"Content-Type": "text/event-stream"} | headers)


async def read_until_error(
    scripted: ScriptedModel, protocol: str
) -> tuple[list[StreamPart], ProviderError]:
    parts: list[StreamPart] = []
    stream = provider_registry.stream(build_connection(scripted, protocol), make_request())
    try:
        while True:
            parts.append(await anext(stream))
    except ProviderError as error:
        return parts, error


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "The provider sent an empty stream of text/event-stream."),
        (b": nothing but a comment\n\n", "The provider sent an empty stream of text/event-stream."),
        (b'event: x\ndata: {"a\n\n', "The provider's answer cannot be read (JSONDecodeError)."),
        (b"event: x\ndata: [1]\n\n", "The provider sent an empty stream of text/event-stream."),
        (b"event: x\ndata: \xff\n\n", "The provider sent an empty stream of text/event-stream."),
        (
            b"event: x\ndata: {\xff\n\n",
            "The provider's answer cannot be read (UnicodeDecodeError).",
        ),
        (
            b"event: x\ndata: " + b"[" * 100_000 + b"\n\n",
            "The provider's answer cannot be read (RecursionError).",
        ),
    ],
)
async def test_each_kind_of_nonsense_has_its_sentence(
    protocol: str, body: bytes, detail: str, scripted: ScriptedModel
) -> None:
    scripted.script(make_reply(body))
    parts, error = await read_until_error(scripted, protocol)
    assert (parts, type(error), error.detail) == ([], ProviderUnavailable, detail)


async def test_json_without_an_answer_is_no_answer(protocol: str, scripted: ScriptedModel) -> None:
    scripted.script(Reply(body=b'{"choices": [], "content": []}'))
    parts, error = await read_until_error(scripted, protocol)
    assert (parts, type(error)) == ([], ProviderUnavailable)


async def test_a_stream_that_ends_too_early_says_so_after_its_text(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(make_reply(encode_text(protocol, "Once upon")))
    parts, error = await read_until_error(scripted, protocol)
    assert join_text(parts) == "Once upon"
    assert error.detail == "The provider's stream ended before the answer did."


async def test_an_error_event_in_the_same_packet_comes_after_the_text_before_it(
    protocol: str, scripted: ScriptedModel
) -> None:
    error_fields = {"type": "rate_limit_error", "message": "Slow down, please."}
    failure = encode_event({"type": "error", "error": error_fields}, "error")
    scripted.script(make_reply(encode_text(protocol, "Once upon") + failure))
    parts, error = await read_until_error(scripted, protocol)
    assert join_text(parts) == "Once upon"
    assert type(error) is ProviderRateLimited
    assert error.detail == "The provider is throttling: Slow down, please."


async def test_an_event_beyond_all_bounds_is_refused_in_words(
    protocol: str, scripted: ScriptedModel
) -> None:
    endless_event = b"event: x\ndata: " + b"x" * 17_000_000
    scripted.script(make_reply(encode_text(protocol, "Once upon") + endless_event))
    parts, error = await read_until_error(scripted, protocol)
    assert join_text(parts) == "Once upon"
    assert error.detail == "The provider sent an event of more than 16 million bytes."


async def test_an_error_page_beyond_all_bounds_is_still_the_error_that_it_is(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(status=500, body=b"<html>" + b"x" * 20_000_000))
    _, error = await read_until_error(scripted, protocol)
    assert error.detail == "The provider failed with 500: it gave no reason."
    assert await asyncio.to_thread(scripted.requests[0].client_left.wait, 20)


async def test_a_server_that_compresses_unasked_is_understood(
    protocol: str, scripted: ScriptedModel
) -> None:
    body = encode_text(protocol, "Once upon") + encode_end(protocol)
    scripted.script(make_reply(zlib.compress(body), **{"Content-Encoding": "deflate"}))
    assert join_text(await collect_parts(build_connection(scripted, protocol))) == "Once upon"
    assert scripted.requests[0].headers["accept-encoding"] == "identity"


async def test_line_ends_of_every_kind_and_a_byte_order_mark_are_understood(
    protocol: str, scripted: ScriptedModel
) -> None:
    body = encode_text(protocol, "Once upon") + encode_end(protocol)
    scripted.script(make_reply(b"\xef\xbb\xbf" + body.replace(b"\n", b"\r\n")))
    scripted.script(make_reply(body.replace(b"\n", b"\r")))
    for _ in range(2):
        assert join_text(await collect_parts(build_connection(scripted, protocol))) == "Once upon"

"""Bytes become events as WHATWG HTML says in section 9.2, however the network cuts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatcore.providers.errors import ProviderUnavailable
from chatcore.providers.server_sent_events import MAX_EVENT_BYTES, Event, EventSplitter

PIECES = (
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"data",
    b"data:",
    b"data: ",
    b"data:  two spaces",
    b"event: message",
    b"event",
    b"id: 7",
    b"retry: 10",
    b": a comment",
    b"unknown: field",
    b"\xef\xbb\xbf",
    "data: Grüß dich 👋🏽".encode(),
    b"text: with: colons",
    b"\xff",
)


def split(*chunks: bytes) -> list[Event]:
    splitter = EventSplitter()
    return [event for chunk in chunks for event in splitter.feed(chunk)]


def split_by_the_book(stream: bytes) -> list[Event]:
    """Interpret a whole stream line by line, as the standard describes it."""
    events = []
    name = b""
    data = b""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for line in text.split(b"\n")[:-1]:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data:
                events.append((name, data[:-1]))
            name = data = b""
        elif field == b"data":
            data += value + b"\n"
        elif field == b"event":
            name = value
    return events


@given(st.lists(st.sampled_from(PIECES)), st.lists(st.integers(0, 30)))
def test_any_stream_cut_anywhere_gives_the_events_of_the_standard(
    pieces: list[bytes], chunk_sizes: list[int]
) -> None:
    stream = b"".join(pieces)
    chunks = []
    start = 0
    for size in chunk_sizes:
        chunks.append(stream[start : start + size])
        start += size
    assert split(*chunks, stream[start:]) == split_by_the_book(stream)


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_byte_by_byte_it_is_the_same(pieces: list[bytes]) -> None:
    stream = b"".join(pieces)
    assert split(*(bytes([byte]) for byte in stream)) == split_by_the_book(stream)


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        # The examples of the standard.
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [(b"", b"YHOO\n+2\n10")]),
        (
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
            b"data:  third event\n",
            [(b"", b"first event"), (b"", b"second event")],
        ),
        (b"data\n\ndata\ndata\n\ndata:", [(b"", b""), (b"", b"\n")]),
        (b"data:test\n\ndata: test\n\n", [(b"", b"test"), (b"", b"test")]),
        (b"event: add\ndata: 73857293\n\n", [(b"add", b"73857293")]),
        # An event without data is none, and its name is not that of the next.
        (b"event: ping\n\ndata: x\n\n", [(b"", b"x")]),
    ],
)
def test_the_examples_of_the_standard(stream: bytes, events: list[Event]) -> None:
    assert split(stream) == events


def test_an_event_without_end_is_refused_in_words_before_it_fills_the_memory() -> None:
    splitter = EventSplitter()
    line = b"data: " + b"x" * 999_993 + b"\n"
    for _ in range(MAX_EVENT_BYTES // len(line)):
        assert splitter.feed(line) == []
    with pytest.raises(ProviderUnavailable, match="more than 16 million bytes"):
        splitter.feed(line)

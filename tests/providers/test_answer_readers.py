"""The events of an answer give the same parts, however the network cuts them."""

import json
from collections.abc import Iterable, Iterator

import pytest

from chatcore.providers.answer_reader import MAX_COLLECTED_CHARS, AnswerReader
from chatcore.providers.anthropic import AnthropicStreamReader
from chatcore.providers.base import ReasoningDelta, StreamEnd, StreamPart, TextDelta
from chatcore.providers.errors import ProviderUnavailable
from chatcore.providers.openai import OpenAIStreamReader
from chatcore.providers.server_sent_events import Event, EventSplitter
from tests.support.provider_calls import PROTOCOLS
from tests.support.scripted_model import make_tool_call
from tests.support.scripted_wire import Reply, build_anthropic_events, build_openai_events

pytestmark = pytest.mark.parametrize("protocol", PROTOCOLS)

REQUEST = {"model": "test-model", "stream_options": {"include_usage": True}}
REPLY = Reply(
    reasoning="Überlegen: 👋🏽 …",
    text="Grüß dich 👋🏽, 你好.",
    tool_calls=[
        make_tool_call("look", {"at": "Zürich"}, id="a"),
        make_tool_call("add", {"n": 1}, id="b"),
    ],
    usage=(100, 7, 60),
)


def make_reader(protocol: str) -> AnswerReader:
    if protocol == "openai":
        return OpenAIStreamReader("test-model")
    return AnthropicStreamReader("test-model")


def make_stream(protocol: str) -> bytes:
    build_events = build_openai_events if protocol == "openai" else build_anthropic_events
    return b"".join(event.encode() for event in build_events(REPLY, REQUEST))


def read_chunks(protocol: str, chunks: Iterable[bytes]) -> list[StreamPart]:
    splitter = EventSplitter()
    reader = make_reader(protocol)
    parts = []
    for chunk in chunks:
        reader.read_events(splitter.feed(chunk))
        parts += reader.take_parts()
    return [*join_neighbors(parts), reader.build_stream_end()]


def join_neighbors(parts: Iterable[StreamPart]) -> Iterator[StreamPart]:
    """Yield the parts with neighbors of one kind joined, whatever the chunks were."""
    texts: list[str] = []
    kind: type[TextDelta | ReasoningDelta] = TextDelta
    for part in parts:
        assert not isinstance(part, StreamEnd)
        if type(part) is not kind and texts:
            yield kind("".join(texts))
            texts = []
        kind = type(part)
        texts.append(part.text)
    if texts:
        yield kind("".join(texts))


def make_text_event(protocol: str, text: str) -> Event:
    if protocol == "openai":
        return b"", json.dumps({"choices": [{"delta": {"content": text}}]}).encode()
    delta = {"type": "text_delta", "text": text}
    return b"x", json.dumps({"type": "content_block_delta", "index": 0, "delta": delta}).encode()


def make_reasoning_event(protocol: str, text: str) -> Event:
    if protocol == "openai":
        return b"", json.dumps({"choices": [{"delta": {"reasoning_content": text}}]}).encode()
    delta = {"type": "thinking_delta", "thinking": text}
    return b"x", json.dumps({"type": "content_block_delta", "index": 0, "delta": delta}).encode()


def make_opened_reader(protocol: str) -> AnswerReader:
    """Return a reader that is inside a block, where the protocol has blocks."""
    reader = make_reader(protocol)
    if protocol == "anthropic":
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}
        reader.read_events([(b"x", json.dumps(block).encode())])
    return reader


@pytest.mark.slow
@pytest.mark.heavy
def test_cut_at_every_byte_it_is_the_same_answer(protocol: str) -> None:
    stream = make_stream(protocol)
    expected_parts = read_chunks(protocol, [stream])
    assert [type(part) for part in expected_parts] == [ReasoningDelta, TextDelta, StreamEnd]
    assert isinstance(expected_parts[-1], StreamEnd)
    assert expected_parts[-1].tool_calls == tuple(REPLY.tool_calls)
    for position in range(len(stream)):
        assert read_chunks(protocol, [stream[:position], stream[position:]]) == expected_parts


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_cut_into_small_pieces_it_is_the_same_answer(protocol: str, size: int) -> None:
    stream = make_stream(protocol)
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert read_chunks(protocol, pieces) == read_chunks(protocol, [stream])


def test_deltas_that_come_together_are_one_part_in_their_order(protocol: str) -> None:
    reader = make_opened_reader(protocol)
    texts = [make_text_event(protocol, text) for text in ("One, ", "two.")]
    thoughts = [make_reasoning_event(protocol, text) for text in ("Hm", "m.")]
    reader.read_events([*texts, *thoughts, make_text_event(protocol, " Three.")])
    assert reader.take_parts() == [
        TextDelta("One, two."),
        ReasoningDelta("Hmm."),
        TextDelta(" Three."),
    ]
    assert reader.take_parts() == []


def test_half_an_emoji_waits_for_the_other_half_across_reasoning(protocol: str) -> None:
    reader = make_opened_reader(protocol)
    reader.read_events([make_text_event(protocol, "a\ud83d")])
    assert reader.take_parts() == [TextDelta("a")]
    reader.read_events([make_reasoning_event(protocol, "Hm."), make_text_event(protocol, "\udc4b")])
    assert reader.take_parts() == [ReasoningDelta("Hm."), TextDelta("👋")]


def test_a_tool_call_without_end_is_refused_in_words(protocol: str) -> None:
    reader = make_reader(protocol)
    fragment = "x" * (MAX_COLLECTED_CHARS // 4)
    if protocol == "openai":
        call = {"index": 0, "id": "a", "function": {"name": "look", "arguments": fragment}}
        event = (b"", json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]}).encode())
    else:
        block = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
        start = {"type": "content_block_start", "index": 0, "content_block": block}
        reader.read_events([(b"x", json.dumps(start).encode())])
        delta = {"type": "input_json_delta", "partial_json": fragment}
        piece = {"type": "content_block_delta", "index": 0, "delta": delta}
        event = (b"x", json.dumps(piece).encode())
    reader.read_events([event] * 4)
    with pytest.raises(ProviderUnavailable, match="more than 16 million characters"):
        reader.read_events([event])

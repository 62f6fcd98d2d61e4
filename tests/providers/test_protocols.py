"""What both protocols have in common, with the real SDKs on real sockets."""

import asyncio
import json
import re
import threading
from contextlib import aclosing
from typing import Any

import pytest

from chatcore.providers import base
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import ChatMessage, StreamPart, ToolCall, Usage
from chatcore.providers.errors import ProviderAuth, ProviderRateLimited
from chatcore.providers.normal_form import MAX_CALLS
from tests.support.provider_calls import (
    KEY,
    LOOK,
    PROTOCOLS,
    build_connection,
    catch_error,
    collect_parts,
    get_end,
    join_reasoning,
    join_text,
    make_request,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.waiting import PATIENCE_SECONDS, wait_until_async

pytestmark = pytest.mark.parametrize("protocol", PROTOCOLS)


async def test_it_streams_the_words_as_they_come_and_finishes(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["One, ", "two, ", "three."], usage=(100, 7), chunk_delay=0.2))
    parts = await collect_parts(build_connection(scripted, protocol))
    assert len(parts) == 4
    assert join_text(parts) == "One, two, three."
    assert (get_end(parts).reason, get_end(parts).usage) == ("stop", Usage(input=100, output=7))


async def test_it_keeps_reasoning_apart_from_the_answer(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="42", reasoning="Six times seven."))
    parts = await collect_parts(build_connection(scripted, protocol))
    assert (join_reasoning(parts), join_text(parts)) == ("Six times seven.", "42")


async def test_it_puts_fragmented_parallel_tool_calls_together(
    protocol: str, scripted: ScriptedModel
) -> None:
    calls = (
        make_tool_call(
            "current_time",
            {"zone": "Europe/Zürich", "format": "a long one, in many fragments"},
            id="a",
        ),
        make_tool_call("calculate", {"expression": "1 + 1"}, id="b"),
        make_tool_call("ping", "", id="c"),
    )
    scripted.script(Reply(text="Let me see.", tool_calls=calls))
    end = get_end(await collect_parts(build_connection(scripted, protocol)))
    assert end.reason == "tool_calls"
    assert end.tool_calls == (*calls[:2], ToolCall(id="c", name="ping", arguments="{}"))


async def test_it_hands_on_broken_arguments_as_the_model_wrote_them(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=[make_tool_call("calculate", '{"expression": "1 +')]))
    assert (
        get_end(await collect_parts(build_connection(scripted, protocol))).tool_calls[0].arguments
        == '{"expression": "1 +'
    )


@pytest.mark.parametrize("size", [1, 7])
async def test_it_survives_characters_cut_in_the_middle(
    protocol: str, size: int, scripted: ScriptedModel
) -> None:
    text = "Grüß dich 👋🏽, 你好, नमस्ते"
    scripted.script(Reply(text=text, bytes_per_write=size))
    assert join_text(await collect_parts(build_connection(scripted, protocol))) == text


async def test_it_joins_an_emoji_that_comes_in_two_escapes(
    protocol: str, scripted: ScriptedModel
) -> None:
    halves = [r'{"content": "a\ud83d"}', r'{"content": "\udc4bb"}']
    if protocol == "openai":
        lines = [
            f'data: {{"choices": [{{"index": 0, "delta": {half}, "finish_reason": null}}]}}'
            for half in halves
        ]
        lines.append('data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}')
    else:
        events = [
            '{"type": "content_block_start", "index": 0, "content_block": {"type": '
            '"text", "text": ""}}'
        ]
        for half in halves:
            delta = half.replace('"content"', '"type": "text_delta", "text"')
            events.append(f'{{"type": "content_block_delta", "index": 0, "delta": {delta}}}')
        events.append(
            '{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": '
            '{"output_tokens": 1}}'
        )
        lines = [f"event: {event.split(chr(34))[3]}\ndata: {event}" for event in events]
    scripted.script(
        Reply(
            body="\n\n".join([*lines, ""]).encode(), headers={"Content-Type": "text/event-stream"}
        )
    )
    assert join_text(await collect_parts(build_connection(scripted, protocol))) == "a👋b"


async def test_its_input_count_always_includes_what_came_from_a_cache(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="ok", usage=(1000, 5, 700)))
    usage = get_end(await collect_parts(build_connection(scripted, protocol))).usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read) == (1000, 5, 700)


async def test_it_makes_up_no_usage(protocol: str, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="ok", usage=False))
    assert get_end(await collect_parts(build_connection(scripted, protocol))).usage is None


@pytest.mark.parametrize("reason", ["length", "refusal"])
async def test_it_says_when_an_answer_was_cut_or_refused(
    protocol: str, reason: str, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(text="Once upon a", finish=reason, tool_calls=[make_tool_call("half", '{"a')])
    )
    end = get_end(await collect_parts(build_connection(scripted, protocol)))
    assert (end.reason, end.tool_calls) == (reason, ())


async def test_it_passes_params_on_but_never_those_that_say_what_the_request_says(
    protocol: str, scripted: ScriptedModel
) -> None:
    params = {
        "temperature": 0.1,
        "top_k": 5,
        "repeat_penalty": 1.1,
        "model": "other",
        "stream": False,
        "extra_headers": {"x-evil": "1"},
    }
    await collect_parts(
        build_connection(scripted, protocol), make_request(params=params, max_tokens=77)
    )
    sent = scripted.requests[0]
    assert (sent.json["temperature"], sent.json["top_k"], sent.json["repeat_penalty"]) == (
        0.1,
        5,
        1.1,
    )
    assert (sent.json["model"], sent.json["stream"], sent.json["max_tokens"]) == (
        "test-model",
        True,
        77,
    )
    assert "x-evil" not in sent.headers


async def test_it_sends_what_the_operator_configured(
    protocol: str, scripted: ScriptedModel
) -> None:
    options = {
        "headers": {"x-team": "blue"},
        "query": {"api-version": "7"},
        "body": {"user": "chatcore"},
    }
    await collect_parts(build_connection(scripted, protocol, options=options))
    sent = scripted.requests[0]
    assert (sent.headers["x-team"], sent.json["user"]) == ("blue", "chatcore")
    assert sent.path.endswith("?api-version=7")


async def test_a_server_without_keys_needs_none_and_never_gets_the_environment_s(
    protocol: str, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    await collect_parts(build_connection(scripted, protocol, api_key=""))
    assert KEY not in str(scripted.requests[0].headers)


async def test_without_key_and_address_it_does_not_call_at_all(
    protocol: str, scripted: ScriptedModel
) -> None:
    connection = base.Connection(protocol=protocol, base_url="", api_key="")
    assert isinstance(await catch_error(connection), ProviderAuth)


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    protocol: str, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert join_text(await collect_parts(build_connection(scripted, protocol)))


@pytest.mark.parametrize(("retries", "calls"), [(0, 1), (2, 3)])
async def test_it_calls_once_and_then_as_often_as_it_may_retry(
    protocol: str, retries: int, calls: int, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(status=500, headers={"Retry-After": "0.01"})
    await catch_error(build_connection(scripted, protocol, max_retries=retries))
    assert len(scripted.requests) == calls


async def test_a_refusal_is_sent_once(protocol: str, scripted: ScriptedModel) -> None:
    scripted.default = Reply(status=400, text="no such role")
    await catch_error(build_connection(scripted, protocol, max_retries=2))
    assert len(scripted.requests) == 1


async def test_it_recovers_by_a_retry(protocol: str, scripted: ScriptedModel) -> None:
    scripted.script(Reply(status=429, headers={"Retry-After": "0.01"}), Reply(text="There."))
    assert (
        join_text(await collect_parts(build_connection(scripted, protocol, max_retries=1)))
        == "There."
    )


async def test_it_does_not_sleep_through_a_retry_after_beyond_its_time_out(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(status=429, headers={"Retry-After": "60"})
    error = await catch_error(
        build_connection(scripted, protocol, max_retries=2, timeout_seconds=5)
    )
    assert isinstance(error, ProviderRateLimited)
    assert error.retry_after == 60
    assert len(scripted.requests) == 1


async def test_retries_of_a_hanging_provider_do_not_add_up(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(hang=True)
    connection = build_connection(scripted, protocol, max_retries=5, timeout_seconds=1.5)
    assert (await catch_error(connection)).type == "provider_timeout"
    assert len(scripted.requests) < 6


async def test_a_slow_stream_may_last_longer_than_the_time_out_between_its_parts(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=list("abcdef"), chunk_delay=0.6))
    assert (
        join_text(await collect_parts(build_connection(scripted, protocol, timeout_seconds=2.5)))
        == "abcdef"
    )


@pytest.mark.parametrize("spoken", [0, 1])
async def test_cancelling_closes_the_connection(
    protocol: str, spoken: int, scripted: ScriptedModel
) -> None:
    has_arrived = threading.Event()
    reply = Reply(chunks=["Well, ", "…"], cut_after=spoken, hang=True)

    def answer(_: dict[str, Any]) -> Reply:
        has_arrived.set()
        return reply

    scripted.script(answer)
    parts: list[StreamPart] = []

    async def read() -> None:
        connection = build_connection(scripted, protocol, timeout_seconds=PATIENCE_SECONDS)
        async for part in provider_registry.stream(connection, make_request()):
            parts.append(part)  # noqa: PERF401 - what has come is seen while it comes

    task = asyncio.create_task(read())
    await wait_until_async(lambda: has_arrived.is_set() and len(parts) >= spoken)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(scripted.requests[0].client_left.wait, 20)


async def test_leaving_a_stream_early_closes_the_connection(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["Well, ", "…"], cut_after=1, hang=True))
    async with aclosing(
        provider_registry.stream(build_connection(scripted, protocol), make_request())
    ) as parts:
        async for part in parts:
            assert part
            break
    assert await asyncio.to_thread(scripted.requests[0].client_left.wait, 20)


async def test_calls_have_the_same_ids_in_each_request_and_in_a_form_that_all_servers_take(
    protocol: str, scripted: ScriptedModel
) -> None:
    history: list[ChatMessage] = []
    stored_ids = ("functions.look:0", "chatcmpl-tool-" + "0" * 32, "call_1", "call_1", "D681PevKs")
    for stored_id in stored_ids:
        call = make_tool_call("look", {}, id=stored_id)
        history += [
            ChatMessage(role="user", content="Look."),
            ChatMessage(role="assistant", tool_calls=(call,)),
            ChatMessage(role="tool", content="A cat.", tool_call_id=stored_id),
        ]
    for end in (6, len(history)):
        request = make_request(*history[:end], tools=[LOOK])
        await collect_parts(build_connection(scripted, protocol), request)
    short, long = (_list_ids(received.json["messages"]) for received in scripted.requests)
    assert long[: len(short)] == short
    assert len(set(long)) == len(stored_ids)
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", each) for each in long)
    assert long[-1] == "D681PevKs"


async def test_tools_that_are_switched_off_since_are_told_in_words(
    protocol: str, scripted: ScriptedModel
) -> None:
    request = make_request(
        ChatMessage(role="user", content="Look."),
        ChatMessage(role="assistant", tool_calls=(make_tool_call("look", {"at": "it"}),)),
        ChatMessage(role="tool", content="A cat.", tool_call_id="call_1"),
        ChatMessage(role="assistant", content="It is a cat."),
        ChatMessage(role="user", content="Thanks."),
    )
    await collect_parts(build_connection(scripted, protocol), request)
    sent = scripted.requests[0].json
    assert [message["role"] for message in sent["messages"]] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert '{"at": "it"}' in str(sent["messages"][1]["content"])
    assert "A cat." in str(sent["messages"][2]["content"])
    assert "tools" not in sent
    assert not _list_ids(sent["messages"])


async def test_two_calls_of_one_answer_with_one_id_keep_both_results(
    protocol: str, scripted: ScriptedModel
) -> None:
    calls = (make_tool_call("look", {"at": "A"}), make_tool_call("look", {"at": "B"}))
    results = (ChatMessage(role="tool", content=at, tool_call_id="call_1") for at in "AB")
    question = ChatMessage(role="user", content="Look.")
    answer = ChatMessage(role="assistant", tool_calls=calls)
    request = make_request(question, answer, *results, tools=[LOOK])
    await collect_parts(build_connection(scripted, protocol), request)
    text = json.dumps(scripted.requests[0].json["messages"])
    for each in _list_ids(scripted.requests[0].json["messages"]):
        assert text.count(each) == 2
    assert '"content": "A"' in text
    assert '"content": "B"' in text


async def test_an_answer_of_more_calls_than_a_server_takes_is_sent_as_two(
    protocol: str, scripted: ScriptedModel
) -> None:
    calls = tuple(make_tool_call("look", {}, id=str(number)) for number in range(MAX_CALLS + 1))
    request = make_request(
        ChatMessage(role="user", content="Look."),
        ChatMessage(role="assistant", content="Looking.", tool_calls=calls),
        tools=[LOOK],
    )
    await collect_parts(build_connection(scripted, protocol), request)
    messages = scripted.requests[0].json["messages"]
    answers = [message for message in messages if message["role"] == "assistant"]
    assert [len(_list_ids([answer])) for answer in answers] == [MAX_CALLS, 1]
    assert [str(answer).count("Looking.") for answer in answers] == [1, 0]


def _list_ids(messages: list[dict[str, Any]]) -> list[str]:
    """Return the ids of all calls, in either protocol."""
    blocks = [
        block
        for message in messages
        for block in (message["content"] if isinstance(message["content"], list) else [])
        if block["type"] == "tool_use"
    ]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    return [call["id"] for call in (*blocks, *calls)]

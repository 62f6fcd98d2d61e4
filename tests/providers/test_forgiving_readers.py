"""Whatever form a server gives its answer, the answer is read; what is no answer is told."""

import asyncio
import json
from functools import partial
from typing import Any

import pytest

from chatcore.providers.answer_reader import classify_end
from chatcore.providers.base import Connection, Tool, ToolCall
from chatcore.providers.client import Deadline
from chatcore.providers.errors import ContextOverflow, ProviderError, ProviderUnavailable
from chatcore.providers.provider_data import list_thoughts, select_tagged_thoughts
from tests.support.provider_calls import (
    build_connection,
    catch_error,
    collect_parts,
    get_end,
    join_reasoning,
    join_text,
    make_request,
)
from tests.support.raw_servers import OK, serve
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow
from tests.support.waiting import wait_until_async

STREAM = {"Content-Type": "text/event-stream"}
PROTOCOLS = ("openai", "anthropic")


def encode(data: dict[str, Any] | str, name: str = "") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def chunk(delta: dict[str, Any], finish: str | None = None, **members: Any) -> bytes:
    return encode({"choices": [{"index": 0, "delta": delta, "finish_reason": finish} | members]})


HELLO = chunk({"content": "Hello."})
STOP = chunk({}, "stop")
DONE = encode("[DONE]")
# The events of an Anthropic message; gateways leave some of them, or their names, out.
START = {"type": "message_start", "message": {"role": "assistant", "usage": {"input_tokens": 9}}}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
TEXT = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "text_delta", "text": "Hello."},
}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}


async def read(
    scripted: ScriptedModel, body: bytes, protocol: str = "openai", **headers: str
) -> Any:
    scripted.script(Reply(body=body, headers=STREAM | headers))
    return await collect_parts(build_connection(scripted, protocol))


@pytest.mark.parametrize(
    "body",
    [
        b"data:\n\n" + HELLO + STOP + DONE,
        b"data: \n\ndata: null\n\ndata: ping\n\n" + HELLO + STOP + DONE,
        b": keep-alive\n\n" + HELLO + b": 1/2\n\n" + STOP + DONE,
        HELLO + encode("[]") + encode({}) + STOP + DONE,
        (HELLO + STOP).removesuffix(b"\n\n"),
        (HELLO + STOP).removesuffix(b"\n"),
        (HELLO + STOP).replace(b"\n\n", b"\n"),
        HELLO + STOP,
        HELLO + DONE,
        HELLO + encode('"[DONE]"'),
        encode({"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}) + DONE,
        encode({"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}),
        HELLO + encode({"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}),
        b"data: " + HELLO + STOP + DONE,
        HELLO + encode({"choices": [None, {"delta": None}]}) + STOP + DONE,
        HELLO + encode({"choices": None, "usage": None}) + STOP + DONE,
    ],
)  # fmt: skip
async def test_an_answer_in_an_odd_stream_is_whole(body: bytes, scripted: ScriptedModel) -> None:
    parts = await read(scripted, body)
    assert (join_text(parts), get_end(parts).reason) == ("Hello.", "stop")


@pytest.mark.parametrize("spaces", [b"", b"\n\n\n", b"\xef\xbb\xbf"])
async def test_a_server_that_cannot_stream_answers_with_json(
    spaces: bytes, scripted: ScriptedModel
) -> None:
    call = {"id": 7, "type": "function", "function": {"name": "look", "arguments": {"at": "it"}}}
    message = {"content": "Hello.", "reasoning_content": "Hm.", "tool_calls": [call]}
    answer = {
        "choices": [{"message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2},
    }
    parts = await read(
        scripted,
        spaces + json.dumps(answer, indent=1).encode(),
        **{"Content-Type": "application/json"},
    )
    end = get_end(parts)
    assert (join_text(parts), join_reasoning(parts)) == ("Hello.", "Hm.")
    assert end.tool_calls == (ToolCall(id="7", name="look", arguments='{"at": "it"}'),)
    assert end.usage
    assert (end.usage.input, end.usage.output) == (9, 2)


async def test_a_whole_message_of_anthropics_is_read(scripted: ScriptedModel) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "it"}}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    message = {
        "type": "message",
        "content": [thought, {"type": "text", "text": "Hello."}, call],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 2},
    }
    parts = await read(scripted, json.dumps(message).encode(), "anthropic")
    end = get_end(parts)
    assert (join_text(parts), join_reasoning(parts)) == ("Hello.", "Hm.")
    assert end.tool_calls == (ToolCall(id="toolu_1", name="look", arguments='{"at": "it"}'),)
    assert list_thoughts(end.provider_data) == [thought]


@pytest.mark.parametrize(
    "events",
    [
        (START, BLOCK, TEXT, END),
        (START, TEXT, END),
        (TEXT, END),
        (START, BLOCK, {name: TEXT[name] for name in ("type", "delta")}, END),
        (START, BLOCK, TEXT, {"type": "message_stop"}),
        (START, BLOCK, TEXT, {"type": "message_delta", "stop_reason": "end_turn"}),
    ],
)
@pytest.mark.parametrize("is_named", [True, False])
async def test_a_gateways_messages_are_read(
    events: tuple[dict[str, Any], ...], is_named: bool, scripted: ScriptedModel
) -> None:
    body = b"".join(encode(event, event["type"] if is_named else "") for event in events)
    parts = await read(scripted, body, "anthropic")
    assert (join_text(parts), get_end(parts).reason) == ("Hello.", "stop")


def piece(
    index: int | str | None = None, id: Any = None, name: Any = None, arguments: Any = None
) -> Any:
    fragment: dict[str, Any] = {"function": {}}
    if index is not None:
        fragment["index"] = index
    if id is not None:
        fragment["id"] = id
    if name is not None:
        fragment["function"]["name"] = name
    if arguments is not None:
        fragment["function"]["arguments"] = arguments
    return fragment


LOOK_A, LOOK_B = ("look", {"bed": "A"}), ("look", {"bed": "B"})
A, B = '{"bed": "A"}', '{"bed": "B"}'


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        # Two calls with one index: no ids, ids, the same id.
        ([piece(0, None, "look", A), piece(0, None, "look", B)], [LOOK_A, LOOK_B]),
        ([piece(0, "a", "look", A), piece(0, "b", "look", B)], [LOOK_A, LOOK_B]),
        ([piece(0, "a", "look", A), piece(0, "a", "look", B)], [LOOK_A, LOOK_B]),
        ([piece(0, "a", "look", A), piece(1, "a", "look", B)], [LOOK_A, LOOK_B]),
        ([piece(0, "a", "look", A[:5]), piece(0, None, None, A[5:]),
          piece(0, "b", "look", B[:5]), piece(0, None, None, B[5:])], [LOOK_A, LOOK_B]),
        # Without an index, with and without ids.
        ([piece(None, None, "look", A), piece(None, None, "look", B)], [LOOK_A, LOOK_B]),
        ([piece(None, "a", "look", A[:5]), piece(None, None, None, A[5:]),
          piece(None, "b", "look", B)], [LOOK_A, LOOK_B]),
        ([piece(None, "a", "look", ""), piece(None, "b", "look", B)], [("look", {}), LOOK_B]),
        # A new id in each piece, with the name and without it.
        ([piece(0, "a", "look", ""), piece(0, "b", None, A[:5]), piece(0, "c", None, A[5:])],
         [LOOK_A]),
        ([piece(0, "a", "look", A[:5]), piece(0, "b", "look", A[5:])], [LOOK_A]),
        ([piece(None, "a", "look", A[:5]), piece(None, "b", "look", A[5:])], [LOOK_A]),
        ([piece(None, "a", "look", A[:5]), piece(None, "b", None, A[5:])], [LOOK_A]),
        # The id, or the name, comes late.
        ([piece(0, None, "look"), piece(0, "a", None, A)], [LOOK_A]),
        ([piece(0, None, "look", A[:5]), piece(0, "a", "look", A[5:])], [LOOK_A]),
        ([piece(0, "a"), piece(0, None, "look"), piece(0, None, None, A)], [LOOK_A]),
        ([piece(0, "a", "look", A), piece(1, "b"), piece(1, None, "look", B)], [LOOK_A, LOOK_B]),
        # The name with each piece, or in two.
        ([piece(0, "a", "look", A[:5]), piece(0, "a", "look", A[5:])], [LOOK_A]),
        ([piece(0, "a", "lo", ""), piece(0, None, "ok", A)], [LOOK_A]),
        ([piece(0, None, "look", ""), piece(0, None, "add", "")], [("look", {}), ("add", {})]),
        # An index that counts the pieces, or is a text.
        ([piece(0, "a", "look", ""), piece(1, None, None, A[:5]), piece(2, None, None, A[5:])],
         [LOOK_A]),
        ([piece("0", "a", "look", A), piece("1", "b", "look", B)], [LOOK_A, LOOK_B]),
        # Arguments: an object, null, JSON in JSON, glued, repeated, behind an empty object.
        ([piece(0, "a", "look", {"bed": "A"})], [LOOK_A]),
        ([piece(0, 7, "look", {"bed": "A"})], [LOOK_A]),
        ([piece(0, "a", "look"), {"index": 0, "function": {"arguments": None}}], [("look", {})]),
        ([piece(0, "a", "look", json.dumps(A))], [LOOK_A]),
        ([piece(0, "a", "look", A + B)], [LOOK_A, LOOK_B]),
        ([piece(0, "a", "look", A), piece(0, "a", "look", A)], [LOOK_A]),
        ([piece(0, "a", "look", A[:5]), piece(0, "a", "look", A)], [LOOK_A]),
        ([piece(0, "a", "look", "{}"), piece(0, None, None, A)], [LOOK_A]),
        ([piece(0, "a", "look", A), piece(0, "a", None, "")], [LOOK_A]),
        ([piece(0, "a", "look", A), piece(0, "a", "look", "")], [LOOK_A]),
        # Other names for the parts.
        ([{"id": "a", "name": "look", "arguments": A}], [LOOK_A]),
        ([{"id": "a", "function": {"name": "look", "parameters": {"bed": "A"}}}], [LOOK_A]),
        (piece(0, "a", "look", A), [LOOK_A]),
    ],
)  # fmt: skip
async def test_calls_in_any_form_are_read(
    pieces: Any, calls: list[Any], scripted: ScriptedModel
) -> None:
    fragments = [[piece] for piece in pieces] if isinstance(pieces, list) else [pieces]
    body = b"".join(chunk({"tool_calls": fragment}) for fragment in fragments)
    tools = [Tool(name=name, description="", parameters={}) for name in ("look", "add")]
    scripted.script(Reply(body=body + chunk({}, "tool_calls") + DONE, headers=STREAM))
    parts = await collect_parts(build_connection(scripted, "openai"), make_request(tools=tools))
    end = get_end(parts)
    assert [(call.name, call.parse_arguments()) for call in end.tool_calls] == calls
    assert len({call.id for call in end.tool_calls}) == len(calls)


async def test_an_old_function_call_is_read(scripted: ScriptedModel) -> None:
    body = chunk({"function_call": {"name": "look", "arguments": A[:5]}})
    body += chunk({"function_call": {"arguments": A[5:]}}, "function_call")
    end = get_end(await read(scripted, body))
    assert [(call.name, call.parse_arguments()) for call in end.tool_calls] == [LOOK_A]


REASON = "The model is loading."


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": REASON, "type": "server_error"}},
        {"error": REASON},
        {"code": "unavailable", "error": REASON},
        {"type": "error", "error": {"type": "api_error", "message": REASON}},
        [{"error": {"message": REASON, "status": "UNAVAILABLE"}}],
        {"object": "error", "message": REASON, "code": 500},
        {"detail": REASON},
        {"detail": [{"loc": ["body", "model"], "msg": REASON}]},
        {"title": REASON},
        {"error": {"message": "Provider returned error", "metadata": {"raw": REASON}}},
        {"error": {"metadata": {"raw": json.dumps({"error": {"message": REASON}})}}},
        {"error": {"message": f"<400> InternalError: {REASON}"}},
        {"error": {"message": json.dumps({"error": {"message": REASON}})}},
        {"base_resp": {"status_code": 1008, "status_msg": REASON}},
        {"errors": [{"message": REASON}]},
        {"success": False, "msg": REASON},
    ],
)
@pytest.mark.parametrize("place", mark_others_slow(["json", "event", "named event", "refusal"]))
async def test_the_reason_of_an_error_arrives_from_wherever_it_stands(
    protocol: str, error: Any, place: str, scripted: ScriptedModel
) -> None:
    text = json.dumps(error)
    replies = {
        "json": Reply(body=text.encode()),
        "event": Reply(body=encode(text), headers=STREAM),
        "named event": Reply(body=encode(text, "error"), headers=STREAM),
        "refusal": Reply(body=text.encode(), status=500),
    }
    scripted.script(replies[place])
    found = await catch_error(build_connection(scripted, protocol))
    assert REASON in found.detail


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"), ("STOP", "stop"), ("eos_token", "stop"), ("COMPLETE", "stop"),
        ("length", "length"), ("MAX_TOKENS", "length"), ("model_length", "length"),
        ("model_context_window_exceeded", "length"), ("max_output_tokens", "length"),
        ("content_filter", "refusal"), ("sensitive", "refusal"), ("SAFETY", "refusal"),
        ("RECITATION", "refusal"), ("guardrail_intervened", "refusal"),
        ("content_filtered", "refusal"), ("PROHIBITED_CONTENT", "refusal"),
        ("network_error", "broken"), ("insufficient_system_resource", "broken"),
        ("error", "broken"), ("abort", "broken"), ("malformed_tool_use", "broken"),
        ("MALFORMED_FUNCTION_CALL", "broken"), ("UNEXPECTED_TOOL_CALL", "broken"),
        ("function_call", "tool_calls"), ("tool_use", "tool_calls"),
        ("OTHER", "unknown"), ("FINISH_REASON_UNSPECIFIED", "unknown"), ("qwertz", "unknown"),
    ],
)  # fmt: skip
async def test_only_a_known_end_is_whole(word: str, reason: str, scripted: ScriptedModel) -> None:
    assert classify_end(word) == reason
    body = HELLO + chunk({}, word) + DONE
    if reason == "broken":
        scripted.script(Reply(body=body, headers=STREAM))
        error = await catch_error(build_connection(scripted, "openai"))
        assert isinstance(error, ProviderUnavailable)
        assert word in error.detail
        return
    end = get_end(await read(scripted, body))
    assert (end.reason, end.word) == (reason.replace("tool_calls", "stop"), word)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_full_window_before_the_first_word_is_an_overflow(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="", finish="model_context_window_exceeded"))
    error: ProviderError = await catch_error(build_connection(scripted, protocol))
    assert isinstance(error, ContextOverflow)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>Hm.</think>\n\nHello.", "Hm.", "Hello."),
        ("\n<think>\nHm.\n</think>\n\nHello.", "\nHm.\n", "Hello."),
        ("<thinking>a < b</thinking>Hello.", "a < b", "Hello."),
        ("<think>One.</think>\n<think>Two.</think>\nHello.", "One.Two.", "Hello."),
        ("<THINK>Hm.</THINK>Hello.", "Hm.", "Hello."),
        ("<thin> is no tag.", "", "<thin> is no tag."),
        ("Write <think>Hm.</think> so.", "", "Write <think>Hm.</think> so."),
        ("<think>Hm.</think>Hello </think> there.", "Hm.", "Hello </think> there."),
        ("<", "", "<"),
        ("◁think▷Hm.◁/think▷Hello.", "Hm.", "Hello."),
        ("[THINK]Hm.[/THINK]Hello.", "Hm.", "Hello."),
        ("[Think] of a number.", "", "[Think] of a number."),
        ("<seed:think>Hm.</seed:think>Hello.", "Hm.", "Hello."),
        ("<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Hello.", "Hm.", "Hello."),
        ("<|begin_of_thought|>Hm.<|end_of_thought|>\n\nHello.", "Hm.", "Hello."),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>"
            "Hello.",
            "Hm.",
            "Hello.",
        ),
        ("<|channel|>final<|message|>Hello.<|return|>", "", "Hello."),
        # The same from a server that removes the marks.
        ("analysisHm. OK.assistantfinalHello.", "Hm. OK.", "Hello."),
        ("assistantfinalHello.", "", "Hello."),
        ("analysis of it: None.", "", "analysis of it: None."),
        ("analysis", "", "analysis"),
        ("Hello.<|im_end|>\n", "", "Hello."),
        ("Hello <|im_end|> there. <| <", "", "Hello <|im_end|> there. <| <"),
        ("<|im_end|>", "", "<|im_end|>"),
        ("Sure.\n<think>Hm.</think>\nHello.", "Hm.", "Sure.\n\nHello."),
        ("Okay, <think>Hm.</think>hello.", "Hm.", "Okay, hello."),
        ("Let me see.\n\n[THINK]Hm.[/THINK]Hello.", "Hm.", "Let me see.\n\nHello."),
        ("One.\nTwo.\n<think>Hm.</think>", "", "One.\nTwo.\n<think>Hm.</think>"),
        ("Use `<think>`. It is a tag.", "", "Use `<think>`. It is a tag."),
    ],
)
async def test_thoughts_in_tags_are_apart_from_the_answer(
    protocol: str, size: int, text: str, thought: str, answer: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=[text[i : i + size] for i in range(0, len(text), size)]))
    parts = await collect_parts(build_connection(scripted, protocol))
    assert (join_reasoning(parts), join_text(parts)) == (thought, answer)
    if protocol == "openai" and thought:
        # MiniMax wants them back in the text, as they stood.
        tagged_thoughts = select_tagged_thoughts(get_end(parts).provider_data, "test-model")
        assert tagged_thoughts in text
        assert thought[:3] in tagged_thoughts


@pytest.mark.parametrize("size", [1, 1000])
async def test_a_tag_without_an_end_behind_the_first_words_is_text(
    size: int, scripted: ScriptedModel
) -> None:
    text = "The tag: <think> begins a thought."
    scripted.script(Reply(chunks=[text[i : i + size] for i in range(0, len(text), size)]))
    parts = await collect_parts(build_connection(scripted, "openai"))
    assert join_text(parts) == text
    assert not select_tagged_thoughts(get_end(parts).provider_data, "test-model")


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": -1, "completion_tokens": 7}, None),
        ({"prompt_tokens": 10**13, "completion_tokens": 7}, None),
        ({"prompt_tokens": {}, "completion_tokens": 7}, None),
        ({"prompt_tokens": True, "completion_tokens": 7}, None),
        ({"prompt_tokens": 9.5, "completion_tokens": 7}, None),
        ([], None),
        ("9", None),
        ({"prompt_tokens": 9.0, "completion_tokens": "7"}, (9, 7)),
        ({"prompt_tokens": 9, "completion_tokens": -1}, (9, 0)),
        ({"prompt_tokens": 9, "completion_tokens": [7]}, (9, 0)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": -1}}, (9, 0)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 90}}, (99, 0)),
    ],
)
async def test_an_impossible_count_is_no_count(
    usage: Any, counts: tuple[int, int] | None, scripted: ScriptedModel
) -> None:
    end = get_end(await read(scripted, HELLO + STOP + encode({"choices": [], "usage": usage})))
    assert (end.usage and (end.usage.input, end.usage.output)) == counts
    if end.usage:
        assert (end.usage.cache_read or 0) >= 0


async def test_tokens_that_only_the_timings_count_are_counted(scripted: ScriptedModel) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    last = {"choices": [], "usage": usage, "timings": {"prompt_n": 9, "cache_n": 90}}
    end = get_end(await read(scripted, HELLO + STOP + encode(last)))
    assert end.usage
    assert (end.usage.input, end.usage.cache_read) == (99, 90)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_comments_are_signs_of_life(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local model reads a long request for minutes, and its server only sends comments."""
    renewals: list[Deadline] = []
    renew = Deadline.renew

    def renew_and_note(deadline: Deadline) -> None:
        renew(deadline)
        renewals.append(deadline)

    def has_renewed(count: int) -> bool:
        return len(renewals) >= count

    monkeypatch.setattr(Deadline, "renew", renew_and_note)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Content-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for count in range(20):
            await wait_until_async(partial(has_renewed, count), what="a renewal")
            writer.write(b": still reading\n\n")
            await writer.drain()
        events = (START, BLOCK, TEXT, END)
        writer.write(
            HELLO + STOP
            if protocol == "openai"
            else b"".join(encode(event, str(event["type"])) for event in events)
        )
        await writer.drain()

    async with serve(answer) as address:
        connection = Connection(
            protocol=protocol, base_url=address, api_key="k", timeout_seconds=60, max_retries=0
        )
        assert join_text(await collect_parts(connection)) == "Hello."

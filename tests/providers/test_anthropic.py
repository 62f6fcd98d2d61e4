"""What is particular to the Anthropic protocol."""

from typing import Any

import pytest

from chatcore.providers.anthropic import DEFAULT_MAX_TOKENS
from chatcore.providers.base import ChatMessage, Image, Usage
from chatcore.providers.errors import ContextOverflow
from tests.support.provider_calls import (
    LOOK,
    build_connection,
    catch_error,
    collect_parts,
    get_end,
    join_text,
    make_request,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.thought_blocks import ORDERS, stream_blocks


async def test_it_sends_alternating_roles_with_tool_results_in_the_users_messages(
    scripted: ScriptedModel,
) -> None:
    request = make_request(
        ChatMessage(
            role="user",
            content="What is this?",
            images=(Image(media_type="image/png", data=b"png"),),
        ),
        ChatMessage(role="user", content="Look twice."),
        ChatMessage(
            role="assistant",
            content="Looking.",
            tool_calls=(
                make_tool_call("look", {"at": "it"}, id="a"),
                make_tool_call("look", "{broken", id="b"),
            ),
        ),
        ChatMessage(role="tool", content="A cat.", tool_call_id="a", tool_name="look"),
        ChatMessage(role="tool", content="", tool_call_id="b", tool_name="look", is_error=True),
        ChatMessage(role="user", content="And?"),
        system="Be brief.",
        tools=[LOOK],
    )
    await collect_parts(build_connection(scripted, "anthropic"), request)
    sent = scripted.requests[0].json
    shape = [
        (message["role"], [block["type"] for block in message["content"]])
        for message in sent["messages"]
    ]
    assert shape == [
        ("user", ["image", "text", "text"]),
        ("assistant", ["text", "tool_use", "tool_use"]),
        ("user", ["tool_result", "tool_result"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
    ]
    assert [block["input"] for block in sent["messages"][1]["content"][1:]] == [
        {"at": "it"},
        {"unreadable_arguments": "{broken"},
    ]
    assert sent["messages"][2]["content"][1] == {
        "type": "tool_result",
        "tool_use_id": sent["messages"][1]["content"][2]["id"],
        "content": "(no output)",
        "is_error": True,
    }
    assert (sent["system"], sent["tools"][0]["input_schema"]) == ("Be brief.", LOOK.parameters)


async def test_a_second_system_text_is_a_second_block(scripted: ScriptedModel) -> None:
    await collect_parts(
        build_connection(scripted, "anthropic"),
        make_request(system="Be brief.", preface="They met."),
    )
    await collect_parts(
        build_connection(scripted, "anthropic"), make_request(system=" ", preface="They met.")
    )
    assert scripted.requests[0].json["system"] == [
        {"type": "text", "text": "Be brief."},
        {"type": "text", "text": "They met."},
    ]
    assert scripted.requests[1].json["system"] == [{"type": "text", "text": "They met."}]


async def test_what_is_said_aside_stands_in_a_message_of_the_users(scripted: ScriptedModel) -> None:
    aside = ChatMessage(role="user", content="Before: they met.", aside=True)
    answer = ChatMessage(
        role="assistant", content="Yes.", tool_calls=(make_tool_call("look", {}, id="a"),)
    )
    result = ChatMessage(role="tool", content="A cat.", tool_call_id="a")
    await collect_parts(
        build_connection(scripted, "anthropic"),
        make_request(
            aside, answer, result, aside, ChatMessage(role="user", content="Go on."), tools=[LOOK]
        ),
    )
    sent = scripted.requests[0].json["messages"]
    assert [
        (message["role"], [block["type"] for block in message["content"]]) for message in sent
    ] == [
        ("user", ["text"]),
        ("assistant", ["text", "tool_use"]),
        ("user", ["tool_result"]),
        ("assistant", ["text"]),
        ("user", ["text", "text"]),
    ]


async def test_images_and_those_of_tool_results_are_sent_as_base64(scripted: ScriptedModel) -> None:
    picture = Image(media_type="image/png", data=b"png")
    request = make_request(
        ChatMessage(role="user", images=(picture,)),
        ChatMessage(role="assistant", tool_calls=(make_tool_call("look", {}, id="a"),)),
        ChatMessage(role="tool", content="A cat.", tool_call_id="a", images=(picture,)),
        tools=[LOOK],
    )
    await collect_parts(build_connection(scripted, "anthropic"), request)
    sent = scripted.requests[0].json["messages"]
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "cG5n"},
    }
    assert sent[0]["content"] == [image]
    assert sent[2]["content"][0]["content"] == [{"type": "text", "text": "A cat."}, image]


async def test_ids_that_a_model_used_again_are_told_apart(scripted: ScriptedModel) -> None:
    history: list[ChatMessage] = []
    for result in ("one", "two"):
        history += [
            ChatMessage(role="user", content="Look."),
            ChatMessage(role="assistant", tool_calls=(make_tool_call("look", {}, id="call:0"),)),
            ChatMessage(role="tool", content=result, tool_call_id="call:0"),
        ]
    await collect_parts(
        build_connection(scripted, "anthropic"), make_request(*history, tools=[LOOK])
    )
    blocks = [
        block for message in scripted.requests[0].json["messages"] for block in message["content"]
    ]
    call_ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    result_ids = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert call_ids == result_ids
    assert len(set(call_ids)) == 2


async def test_it_never_sends_an_empty_message(scripted: ScriptedModel) -> None:
    silent = [
        ChatMessage(role="user", content="  \n"),
        ChatMessage(role="assistant"),
        ChatMessage(role="user", content="Hi"),
    ]
    await collect_parts(build_connection(scripted, "anthropic"), make_request(*silent, system=" "))
    assert scripted.requests[0].json["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    ]
    assert "system" not in scripted.requests[0].json


async def test_a_request_that_begins_with_an_answer_still_begins_with_the_user(
    scripted: ScriptedModel,
) -> None:
    request = make_request(
        ChatMessage(role="assistant", content="As I said."),
        ChatMessage(role="user", content="Go on."),
    )
    await collect_parts(build_connection(scripted, "anthropic"), request)
    assert [message["role"] for message in scripted.requests[0].json["messages"]] == [
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize(
    ("options", "sent"),
    [({}, DEFAULT_MAX_TOKENS), ({"max_tokens": 50}, 50), ({"params": {"max_tokens": 60}}, 60)],
)
async def test_it_always_names_an_output_limit(
    options: dict[str, int], sent: int, scripted: ScriptedModel
) -> None:
    await collect_parts(build_connection(scripted, "anthropic"), make_request(**options))
    assert scripted.requests[0].json["max_tokens"] == sent


async def test_thinking_goes_back_signed_to_the_model_that_thought_it_and_to_no_other(
    scripted: ScriptedModel,
) -> None:
    scripted.script(
        Reply(reasoning="I should look.", tool_calls=[make_tool_call("look", {}, id="a")])
    )
    connection = build_connection(scripted, "anthropic")
    end = get_end(await collect_parts(connection))
    answer = ChatMessage(
        role="assistant", tool_calls=end.tool_calls, provider_data=end.provider_data
    )
    history = (
        ChatMessage(role="user", content="Look."),
        answer,
        ChatMessage(role="tool", content="A cat.", tool_call_id="a"),
    )
    await collect_parts(connection, make_request(*history, tools=[LOOK]))
    thought, call = scripted.requests[1].json["messages"][1]["content"]
    assert thought == {"type": "thinking", "thinking": "I should look.", "signature": "signed"}
    assert (call["type"], call["name"]) == ("tool_use", "look")
    other = ChatMessage(
        role="assistant",
        content="A cat.",
        provider_data={"anthropic": {"model": "other", "thinking": [{}]}},
    )
    await collect_parts(connection, make_request(history[0], other))
    assert scripted.requests[2].json["messages"][1]["content"] == [
        {"type": "text", "text": "A cat."}
    ]


async def test_its_input_count_gains_the_cache_reads_and_writes_that_the_protocol_leaves_out(
    scripted: ScriptedModel,
) -> None:
    scripted.script(Reply(text="ok", usage=(1000, 5, 700, 200)))
    usage = get_end(await collect_parts(build_connection(scripted, "anthropic"))).usage
    assert usage == Usage(input=1000, output=5, cache_read=700, cache_write=200)


async def test_a_full_window_is_an_overflow_while_nothing_was_said(scripted: ScriptedModel) -> None:
    scripted.script(Reply(finish="model_context_window_exceeded"))
    assert isinstance(await catch_error(build_connection(scripted, "anthropic")), ContextOverflow)


async def test_a_full_window_is_a_cut_answer_once_something_was_said(
    scripted: ScriptedModel,
) -> None:
    scripted.script(Reply(text="Half an", finish="model_context_window_exceeded"))
    parts = await collect_parts(build_connection(scripted, "anthropic"))
    assert (join_text(parts), get_end(parts).reason) == ("Half an", "length")


async def test_a_paused_turn_is_a_cut_answer(scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="So far.", finish="pause_turn"))
    assert get_end(await collect_parts(build_connection(scripted, "anthropic"))).reason == "length"


@pytest.mark.parametrize("blocks", ORDERS)
async def test_blocks_go_back_in_the_order_in_which_they_came(
    blocks: list[dict[str, Any]], scripted: ScriptedModel
) -> None:
    scripted.script(stream_blocks(blocks))
    connection = build_connection(scripted, "anthropic")
    parts = await collect_parts(connection)
    end = get_end(parts)
    question = ChatMessage(role="user", content="Look.")
    answer = ChatMessage(
        role="assistant",
        content=join_text(parts),
        tool_calls=end.tool_calls,
        provider_data=end.provider_data,
    )
    results = [
        ChatMessage(role="tool", content="A cat.", tool_call_id=call.id) for call in end.tool_calls
    ]
    await collect_parts(connection, make_request(question, answer, *results, tools=[LOOK]))
    sent = scripted.requests[-1].json["messages"][1]["content"]
    without_ids = [{name: block[name] for name in block if name != "id"} for block in sent]
    # A blank text stands for nothing, and nobody takes it.
    assert without_ids == [block for block in blocks if block.get("text") != " "]

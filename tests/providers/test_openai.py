"""What is particular to the OpenAI protocol and to servers that are almost compatible."""

import json
from dataclasses import replace
from typing import Any

import pytest

from chatcore.providers.base import ChatMessage, Image, ToolCall, Usage
from chatcore.providers.normal_form import STOPPED_ANSWER
from tests.support.provider_calls import (
    LOOK,
    build_connection,
    collect_parts,
    get_end,
    join_reasoning,
    join_text,
    make_request,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply


def stream_of(*deltas: dict[str, Any], finish: str = "stop") -> Reply:
    """A stream as another server might send it: without role, usage or [DONE]."""
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return Reply(body=body.encode(), headers={"Content-Type": "text/event-stream"})


async def test_it_sends_every_kind_of_message_in_order(scripted: ScriptedModel) -> None:
    request = make_request(
        ChatMessage(
            role="user",
            content="What is this?",
            images=(Image(media_type="image/png", data=b"png"),),
        ),
        ChatMessage(
            role="assistant",
            tool_calls=(
                make_tool_call("look", {"at": "it"}, id="a"),
                make_tool_call("look", "{broken", id="b"),
            ),
        ),
        ChatMessage(role="tool", content="A cat.", tool_call_id="a", tool_name="look"),
        ChatMessage(role="tool", content="", tool_call_id="b", tool_name="look", is_error=True),
        ChatMessage(role="assistant", content="A cat."),
        ChatMessage(role="user"),
        ChatMessage(role="user", content="Sure?"),
        system="Be brief.",
        tools=[LOOK],
    )
    await collect_parts(build_connection(scripted, "openai"), request)
    sent = scripted.requests[0].json
    assert [message["role"] for message in sent["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert sent["messages"][1]["content"][1]["image_url"]["url"] == "data:image/png;base64,cG5n"
    call_ids = [call["id"] for call in sent["messages"][2]["tool_calls"]]
    assert [message["tool_call_id"] for message in sent["messages"][3:5]] == call_ids
    assert [message["content"] for message in sent["messages"][2:5]] == [
        "",
        "A cat.",
        "(no output)",
    ]
    assert sent["tools"][0]["function"] == {
        "name": "look",
        "description": "Look at it.",
        "parameters": {"type": "object", "properties": {}},
    }
    assert sent["stream_options"] == {"include_usage": True}


async def test_two_system_texts_are_one_message_since_some_templates_refuse_a_second(
    scripted: ScriptedModel,
) -> None:
    await collect_parts(
        build_connection(scripted, "openai"), make_request(system="Be brief.", preface="They met.")
    )
    await collect_parts(
        build_connection(scripted, "openai"), make_request(system=" ", preface="They met.")
    )
    both, alone = (
        [m["content"] for m in request.json["messages"] if m["role"] == "system"]
        for request in scripted.requests
    )
    assert (both, alone) == (["Be brief.\n\nThey met."], ["They met."])


async def test_what_is_said_aside_joins_the_users_words_beside_it(scripted: ScriptedModel) -> None:
    aside, picture = (
        ChatMessage(role="user", content="Before: they met.", aside=True),
        Image(media_type="image/png", data=b"png"),
    )
    user = ChatMessage(role="user", content="Go on.", images=(picture,))
    answer = ChatMessage(role="assistant", content="Yes.")
    await collect_parts(
        build_connection(scripted, "openai"), make_request(aside, user, answer, aside, answer)
    )
    sent = scripted.requests[0].json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant"]
    assert sent[0]["content"][0] == {"type": "text", "text": "Before: they met.\n\nGo on."}
    assert sent[0]["content"][1]["type"] == "image_url"
    assert sent[2]["content"] == "Before: they met."


async def test_neighbors_of_one_role_are_joined_since_many_templates_refuse_them(
    scripted: ScriptedModel,
) -> None:
    first, second = (ChatMessage(role="user", content=text) for text in ("One.", "Two."))
    half, rest = (ChatMessage(role="assistant", content=text) for text in ("Half", "Rest."))
    calling = ChatMessage(role="assistant", tool_calls=(make_tool_call("look", id="a"),))
    result = ChatMessage(role="tool", content="A cat.", tool_call_id="a")
    await collect_parts(
        build_connection(scripted, "openai"),
        make_request(first, second, half, rest, calling, result, first, tools=[LOOK]),
    )
    sent = scripted.requests[0].json["messages"]
    assert [(message["role"], message["content"]) for message in sent] == [
        ("user", "One.\n\nTwo."),
        ("assistant", "Half\n\nRest."),
        ("tool", "A cat."),
        ("assistant", STOPPED_ANSWER),
        ("user", "One."),
    ]
    assert len(sent[1]["tool_calls"]) == 1


async def test_a_request_begins_with_the_user_since_some_servers_refuse_another(
    scripted: ScriptedModel,
) -> None:
    call_message = ChatMessage(role="assistant", tool_calls=(make_tool_call("look", {}, id="a"),))
    result = ChatMessage(role="tool", content="A cat.", tool_call_id="a")
    await collect_parts(
        build_connection(scripted, "openai"),
        make_request(call_message, result, system="Be brief.", tools=[LOOK]),
    )
    await collect_parts(
        build_connection(scripted, "openai"),
        make_request(ChatMessage(role="assistant", content="As I said."), system="Be brief."),
    )
    first, second = (
        [message["role"] for message in request.json["messages"]] for request in scripted.requests
    )
    assert first == ["system", "user", "assistant", "tool"]
    assert second == ["system", "user", "assistant"]


async def test_images_of_tool_results_follow_them_since_these_hold_text_alone(
    scripted: ScriptedModel,
) -> None:
    picture = Image(media_type="image/png", data=b"png")
    request = make_request(
        ChatMessage(role="user", content="Look."),
        ChatMessage(
            role="assistant",
            tool_calls=(make_tool_call("look", {}, id="a"), make_tool_call("look", {}, id="b")),
        ),
        ChatMessage(role="tool", content="A cat.", tool_call_id="a", images=(picture,)),
        ChatMessage(role="tool", content="A dog.", tool_call_id="b", images=(picture,)),
        ChatMessage(role="assistant", content="A cat and a dog."),
        tools=[LOOK],
    )
    await collect_parts(build_connection(scripted, "openai"), request)
    sent = scripted.requests[0].json["messages"]
    assert [message["role"] for message in sent] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert [message["content"] for message in sent[2:4]] == ["A cat.", "A dog."]
    assert [part["type"] for part in sent[5]["content"]] == ["text", "image_url", "image_url"]


async def test_broken_arguments_go_back_as_an_object_so_that_no_template_fails_on_them(
    scripted: ScriptedModel,
) -> None:
    calls = (
        make_tool_call("look", '{"at": "it"}', id="a"),
        make_tool_call("look", "{broken", id="b"),
        make_tool_call("look", r'{"at": "\ud83d"}', id="c"),
    )
    await collect_parts(
        build_connection(scripted, "openai"),
        make_request(ChatMessage(role="assistant", tool_calls=calls), tools=[LOOK]),
    )
    sent = [
        json.loads(each["function"]["arguments"])
        for each in scripted.requests[0].json["messages"][1]["tool_calls"]
    ]
    assert sent == [{"at": "it"}, {"unreadable_arguments": "{broken"}, {"at": "�"}]


async def test_the_name_of_the_output_limit_can_be_configured(scripted: ScriptedModel) -> None:
    connection = build_connection(
        scripted, "openai", options={"max_tokens_field": "max_completion_tokens"}
    )
    await collect_parts(connection, make_request(max_tokens=9))
    assert scripted.requests[0].json["max_completion_tokens"] == 9
    assert "max_tokens" not in scripted.requests[0].json


async def test_the_key_goes_out_as_a_bearer_token(scripted: ScriptedModel) -> None:
    await collect_parts(build_connection(scripted, "openai", api_key=" sk-mine \n"))
    assert scripted.requests[0].headers["authorization"] == "Bearer sk-mine"


async def test_a_stream_without_done_and_usage_is_complete_when_it_says_why_it_stopped(
    scripted: ScriptedModel,
) -> None:
    scripted.script(stream_of({"content": "Hi."}))
    parts = await collect_parts(build_connection(scripted, "openai"))
    assert (join_text(parts), get_end(parts).reason, get_end(parts).usage) == ("Hi.", "stop", None)


async def test_parallel_calls_that_share_an_index_are_told_apart_by_id(
    scripted: ScriptedModel,
) -> None:
    deltas = [
        {
            "tool_calls": [
                {"index": 0, "id": name, "function": {"name": "add", "arguments": f'{{"n": {n}}}'}}
            ]
        }
        for n, name in enumerate("ab")
    ]
    scripted.script(stream_of(*deltas))
    end = get_end(await collect_parts(build_connection(scripted, "openai")))
    assert end.reason == "tool_calls"
    assert end.tool_calls == tuple(
        ToolCall(id=name, name="add", arguments=f'{{"n": {n}}}') for n, name in enumerate("ab")
    )


async def test_a_call_without_an_id_is_given_one(scripted: ScriptedModel) -> None:
    scripted.script(stream_of({"tool_calls": [{"function": {"name": "add", "arguments": "{}"}}]}))
    assert (
        get_end(await collect_parts(build_connection(scripted, "openai")))
        .tool_calls[0]
        .id.startswith("call_")
    )


async def test_reasoning_under_its_other_names_is_reasoning_too(scripted: ScriptedModel) -> None:
    pieces = [
        {"type": "thinking", "thinking": [{"type": "text", "text": " more"}]},
        {"type": "text", "text": "Yes."},
    ]
    scripted.script(stream_of({"reasoning": "Thinking"}, {"content": pieces}))
    parts = await collect_parts(build_connection(scripted, "openai"))
    assert (join_reasoning(parts), join_text(parts)) == ("Thinking more", "Yes.")


async def test_a_refusal_is_the_models_words_and_told_as_one(scripted: ScriptedModel) -> None:
    scripted.script(stream_of({"refusal": "I cannot "}, {"refusal": "do that."}))
    parts = await collect_parts(build_connection(scripted, "openai"))
    assert (join_text(parts), get_end(parts).reason) == ("I cannot do that.", "refusal")


async def test_cached_tokens_are_part_of_the_prompt_tokens(scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="ok", usage=(1000, 5, 700)))
    assert get_end(await collect_parts(build_connection(scripted, "openai"))).usage == Usage(
        input=1000, output=5, cache_read=700
    )


async def test_what_a_dialect_wants_back_with_a_call_goes_back_to_the_same_model_only(
    scripted: ScriptedModel,
) -> None:
    signature = {"google": {"thought_signature": "signed"}}
    fragment = {
        "index": 0,
        "id": "a",
        "function": {"name": "look", "arguments": "{}"},
        "extra_content": signature,
    }
    scripted.script(
        stream_of(
            {"reasoning_content": "I should look."}, {"tool_calls": [fragment]}, finish="tool_calls"
        )
    )
    connection = build_connection(scripted, "openai")
    end = get_end(await collect_parts(connection))
    answer = ChatMessage(
        role="assistant", tool_calls=end.tool_calls, provider_data=end.provider_data
    )
    history = (
        ChatMessage(role="user", content="Look."),
        answer,
        ChatMessage(role="tool", content="A cat.", tool_call_id="a"),
    )
    question = ChatMessage(role="user", content="And?")
    for messages in (history, (*history, question)):
        await collect_parts(connection, make_request(*messages, tools=[LOOK]))
    await collect_parts(connection, replace(make_request(*history, tools=[LOOK]), model="other"))
    in_turn, later, other = (request.json["messages"][1] for request in scripted.requests[1:])
    assert in_turn == later
    assert (later["reasoning_content"], later["tool_calls"][0]["extra_content"]) == (
        "I should look.",
        signature,
    )
    assert "reasoning_content" not in other
    assert "extra_content" not in other["tool_calls"][0]


def call_delta(**more: Any) -> dict[str, Any]:
    fragment = {"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}}
    return {"tool_calls": [fragment | more]}


async def send_back(scripted: ScriptedModel, *deltas: dict[str, Any]) -> dict[str, Any]:
    """Let a model answer with these deltas, and return the form in which its answer goes back."""
    scripted.script(stream_of(*deltas, finish="tool_calls"))
    connection = build_connection(scripted, "openai")
    end = get_end(await collect_parts(connection))
    answer = ChatMessage(
        role="assistant", tool_calls=end.tool_calls, provider_data=end.provider_data
    )
    question = ChatMessage(role="user", content="Look.")
    result = ChatMessage(role="tool", content="A cat.", tool_call_id="a")
    await collect_parts(connection, make_request(question, answer, result, question, tools=[LOOK]))
    sent: dict[str, Any] = scripted.requests[-1].json["messages"][1]
    return sent


async def test_the_details_of_reasoning_go_back_as_one_list_in_their_order(
    scripted: ScriptedModel,
) -> None:
    text = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    pieces = [
        text | {"text": "I should "},
        text | {"text": "look.", "signature": None},
        text | {"text": None, "signature": "signed"},
        {"type": "reasoning.encrypted", "index": 1, "data": "sealed", "id": "a"},
        {"type": "reasoning.encrypted", "index": 1, "data": "sealed too", "id": "b"},
    ]
    deltas = [{"reasoning": "x", "reasoning_details": [piece]} for piece in pieces]
    sent = await send_back(scripted, *deltas, call_delta())
    assert sent["reasoning_details"] == [
        text | {"text": "I should look.", "signature": "signed"},
        *pieces[3:],
    ]
    assert "reasoning_content" not in sent


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_goes_back_under_the_name_under_which_it_came(
    field: str, scripted: ScriptedModel
) -> None:
    sent = await send_back(scripted, {field: "I should "}, {field: "look."}, call_delta())
    assert {name: sent[name] for name in sent if name.startswith("reasoning")} == {
        field: "I should look."
    }

"""Tools that the client runs, over `/v1/messages`, with a memory and without one."""

import base64
import json
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic

from chatcore.models import Message
from models_registry.models import AiModel
from tests.support.anthropic_client import (
    HELLO,
    WEATHER,
    ask,
    ask_raw,
    build_body,
    claude,
    client,
    get_last_call,
    gpt,
)
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["claude", "client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)

CALLS = (
    make_tool_call("weather", {"city": "Oslo"}, id="toolu_1"),
    make_tool_call("weather", {"city": "Rome"}, id="toolu_2"),
)
NAMED = {"X-Session-Id": "trip"}


def build_results(**other: Any) -> dict[str, Any]:
    results: list[Any] = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Rain", **other},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "Sun"},
    ]
    return {"role": "user", "content": results}


def test_parallel_calls_and_their_results(client: Anthropic, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Let me look.", tool_calls=CALLS), Reply(text="Rain and sun."))
    answer = ask(client, tools=[WEATHER])
    assert answer.stop_reason == "tool_use"
    assert [block.type for block in answer.content] == ["text", "tool_use", "tool_use"]
    assert answer.content[2].input == {"city": "Rome"}
    said = {"role": "assistant", "content": answer.content}
    assert ask(client, [*HELLO, said, build_results()], tools=[WEATHER]).content[0].text
    sent = json.dumps(get_last_call(scripted)["messages"])
    assert sent.index("Rain") < sent.index("Sun")


def test_calls_are_streamed(client: Anthropic, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Let me look.", tool_calls=CALLS))
    with client.messages.stream(**build_body(tools=[WEATHER])) as stream:
        message = stream.get_final_message()
    assert [block.input for block in message.content if block.type == "tool_use"] == [
        {"city": "Oslo"},
        {"city": "Rome"},
    ]
    assert message.stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("choice", "translated"),
    [
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        (
            {"type": "tool", "name": "weather"},
            {"type": "function", "function": {"name": "weather"}},
        ),
    ],
)
def test_a_choice_of_tools_is_translated(
    gpt: Anthropic, scripted: ScriptedModel, choice: Any, translated: Any
) -> None:
    ask(gpt, tools=[WEATHER | {"strict": True}], tool_choice=choice)
    call = get_last_call(scripted)
    assert call["tool_choice"] == translated
    assert call["tools"][0]["function"]["strict"] is True


def test_a_choice_of_tools_reaches_a_model_of_the_same_protocol(
    claude: Anthropic, scripted: ScriptedModel
) -> None:
    choice: Any = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}
    ask(claude, tools=[WEATHER | {"strict": True}], tool_choice=choice)
    call = get_last_call(scripted)
    assert call["tool_choice"] == choice
    assert call["tools"][0]["strict"] is True


def test_the_turn_of_a_session_goes_on_with_the_results(
    client: Anthropic, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=CALLS), Reply(text="Rain and sun."))
    ask(client, tools=[WEATHER], extra_headers=NAMED)
    answer = ask(client, [build_results(is_error=True)], tools=[WEATHER], extra_headers=NAMED)
    assert answer.content[0].text == "Rain and sun."
    stored = Message.objects.filter(role="tool").order_by("seq")
    assert list(stored.values_list("content", "is_error")) == [("Rain", True), ("Sun", False)]


def test_words_beside_the_results_are_the_next_question_of_a_session(
    client: Anthropic, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=CALLS), Reply(text="As you wish."))
    answer = ask(client, tools=[WEATHER], extra_headers=NAMED)
    said = {"role": "assistant", "content": answer.content}
    results = build_results()
    results["content"].append({"type": "text", "text": "Only Rome, please."})
    ask(client, [*HELLO, said, results], tools=[WEATHER], extra_headers=NAMED)
    sent = json.dumps(get_last_call(scripted)["messages"])
    assert sent.index("Rain") < sent.index("Sun") < sent.index("Only Rome")
    current = Message.objects.filter(branch=None).order_by("seq")
    assert list(current.values_list("role", flat=True)) == [
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
    ]


@pytest.mark.parametrize("headers", [{}, NAMED])
def test_an_image_in_a_result_reaches_the_model(
    claude: Anthropic, scripted: ScriptedModel, headers: dict[str, str]
) -> None:
    AiModel.objects.update(supports_images=True)
    scripted.script(Reply(tool_calls=CALLS[:1]), Reply(text="A square."))
    answer = ask(claude, tools=[WEATHER], extra_headers=headers)
    data = base64.b64encode(build_png(2, 2)).decode()
    image = {"type": "base64", "media_type": "image/png", "data": data}
    content: Any = [{"type": "text", "text": "Look:"}, {"type": "image", "source": image}]
    result: Any = {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}
    said = {"role": "assistant", "content": answer.content}
    ask(
        claude,
        [*HELLO, said, {"role": "user", "content": [result]}],
        tools=[WEATHER],
        extra_headers=headers,
    )
    sent = get_last_call(scripted)["messages"][-1]["content"][0]["content"]
    assert [part["type"] for part in sent] == ["text", "image"]


def test_a_missing_result_is_named(client: Anthropic, scripted: ScriptedModel) -> None:
    scripted.script(Reply(tool_calls=CALLS))
    ask(client, tools=[WEATHER], extra_headers=NAMED)
    results = build_results()
    results["content"].pop()
    with pytest.raises(anthropic.BadRequestError, match="toolu_2") as refusal:
        ask(client, [results], tools=[WEATHER], extra_headers=NAMED)
    assert "`tool_result` blocks" in str(refusal.value)


SEARCH: Any = {"type": "web_search_20250305", "name": "web_search"}


@pytest.mark.parametrize("protocol", ["claude", "gpt"])
@pytest.mark.parametrize("type", ["code_execution_20250825", "of_tomorrow", "of\ntomorrow"])
def test_tools_that_others_run_are_left_out_and_named(
    protocol: str, type: str, client: Anthropic, scripted: ScriptedModel, request: Any
) -> None:
    raw = ask_raw(
        request.getfixturevalue(protocol),
        tools=[SEARCH | {"type": type}, WEATHER | {"defer_loading": True}],
        tool_choice={"type": "tool", "name": "web_search"},
    )
    names = raw.headers["x-ignored-fields"].split(", ")
    assert names == [f"tools.{type}".replace("\n", "_"), "tools.defer_loading"]
    sent = get_last_call(scripted)
    assert len(sent["tools"]) == 1
    assert "tool_choice" not in sent


FIND: Any = {"name": "find", "input_schema": {"type": "object"}}
DEFERRED: Any = [
    FIND | {"name": name, "defer_loading": True} for name in ("weather", "tides", "moon")
]


def list_offered_tools(scripted: ScriptedModel) -> list[str]:
    sent = get_last_call(scripted)["tools"]
    return [tool.get("function", tool)["name"] for tool in sent]


@pytest.mark.parametrize("headers", [{}, NAMED])
def test_deferred_tools_are_offered_when_a_search_or_a_call_names_them(
    client: Anthropic, scripted: ScriptedModel, headers: dict[str, str]
) -> None:
    tools = [FIND, *DEFERRED]
    scripted.script(Reply(tool_calls=[make_tool_call("find", id="toolu_1")]))
    answer = ask_raw(client, tools=tools, extra_headers=headers)
    assert "x-ignored-fields" not in answer.headers
    assert list_offered_tools(scripted) == ["find"]
    reference = {"type": "tool_reference", "tool_name": "tides"}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [reference]}
    call = {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}}
    history = [
        *HELLO,
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    scripted.script(Reply(tool_calls=[make_tool_call("tides", id="toolu_2")]))
    ask(client, history, tools=tools, extra_headers=headers)
    assert list_offered_tools(scripted) == ["find", "tides"]
    call = {"type": "tool_use", "id": "toolu_2", "name": "moon", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_2", "content": "Full."}
    history = [
        *HELLO,
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    ask(client, history, tools=tools)
    assert list_offered_tools(scripted) == ["find", "moon"]
    ask(client, tools=tools, tool_choice={"type": "tool", "name": "weather"})
    assert list_offered_tools(scripted) == ["find", "weather"]


def test_deferred_tools_that_only_a_server_finds_are_offered_at_once(
    client: Anthropic, scripted: ScriptedModel
) -> None:
    type = "tool_search_tool_regex_20251119"
    search = {"type": type, "name": "tool_search_tool_regex"}
    raw = ask_raw(client, tools=[search, FIND, *DEFERRED])
    assert list_offered_tools(scripted) == ["find", "weather", "tides", "moon"]
    ignored = raw.headers["x-ignored-fields"].split(", ")
    assert ignored == [f"tools.{type}", "tools.defer_loading"]


def test_a_search_of_the_providers_is_passed_on(claude: Anthropic, scripted: ScriptedModel) -> None:
    search = SEARCH | {"max_uses": 3, "allowed_domains": ["example.org"]}
    raw = ask_raw(claude, tools=[search, WEATHER], extra_headers=NAMED)
    assert "x-ignored-fields" not in raw.headers
    tools = get_last_call(scripted)["tools"]
    assert {key: tools[0][key] for key in search} == search
    assert "input_schema" not in tools[0]
    assert tools[1]["name"] == "weather"


def test_a_search_of_claude_code_leaves_the_conversation_as_it_is(
    claude: Anthropic, scripted: ScriptedModel
) -> None:
    headers = {"X-Claude-Code-Session-Id": "0b5c1f2e-7d3a-4c55-9a39-1f0e6a1b2c3d"}
    scripted.script(Reply(tool_calls=[make_tool_call("weather", id="toolu_1")]))
    ask(claude, tools=[WEATHER], extra_headers=headers)
    query: Any = [{"role": "user", "content": "Perform a web search for the query: herons"}]
    ask(claude, query, tools=[SEARCH], extra_headers=headers)
    sent = get_last_call(scripted)
    assert len(sent["messages"]) == 1
    assert "interrupted" not in json.dumps(sent)
    assert Message.objects.count() == 2


def test_a_search_that_the_provider_has_not_is_left_out_and_named(
    gpt: Anthropic, scripted: ScriptedModel
) -> None:
    raw = ask_raw(gpt, tools=[SEARCH, WEATHER])
    assert raw.headers["x-ignored-fields"] == "tools.web_search_20250305"
    assert len(get_last_call(scripted)["tools"]) == 1


def test_what_the_provider_searched_is_no_part_of_the_answer(
    claude: Anthropic, scripted: ScriptedModel
) -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    blocks = [use, found, {"type": "text", "text": "Herons nest high."}]
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "test-model",
        "content": blocks,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    scripted.script(Reply(body=json.dumps(message).encode()))
    answer = ask(claude, tools=[SEARCH])
    assert [block.type for block in answer.content] == ["text"]
    assert answer.content[0].text == "Herons nest high."
    assert answer.stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("type", "name"),
    [
        ("bash_20250124", "bash"),
        ("text_editor_20250728", "str_replace_based_edit_tool"),
        ("memory_20250818", "memory"),
        ("computer_20250124", "computer"),
    ],
)
def test_anthropics_tools_that_the_client_runs_are_functions(
    client: Anthropic, scripted: ScriptedModel, type: str, name: str
) -> None:
    scripted.script(Reply(tool_calls=[make_tool_call(name, {"command": "ls"})]))
    raw = ask_raw(client, tools=[{"type": type, "name": name}])
    assert "x-ignored-fields" not in raw.headers
    [tool] = get_last_call(scripted)["tools"]
    assert name in json.dumps(tool)
    assert "properties" in json.dumps(tool)
    [call] = raw.parse().content
    assert (call.type, call.name, call.input) == ("tool_use", name, {"command": "ls"})


def test_blocks_that_others_made_do_not_end_a_conversation(
    claude: Anthropic, scripted: ScriptedModel
) -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    call = {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}}
    reference = {"type": "tool_reference", "tool_name": "weather"}
    said = {"role": "assistant", "content": [use, found, {"type": "text", "text": "Hm."}, call]}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [reference]}
    asked = {"role": "user", "content": [result, {"type": "of_tomorrow"}]}
    raw = ask_raw(claude, [*HELLO, said, asked], tools=[WEATHER])
    assert raw.headers["x-ignored-fields"].split(", ") == [
        "messages.content.server_tool_use",
        "messages.content.web_search_tool_result",
        "messages.content.of_tomorrow",
    ]
    sent = json.dumps(get_last_call(scripted)["messages"])
    assert "[Tool found: weather]" in sent
    assert "of_tomorrow" not in sent


def test_a_known_block_in_a_wrong_place_is_refused(claude: Anthropic) -> None:
    block: Any = {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}}
    with pytest.raises(anthropic.BadRequestError, match=r"content\[0\].type"):
        ask(claude, [{"role": "user", "content": [block]}])

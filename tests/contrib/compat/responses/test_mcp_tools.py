"""MCP servers that a request brings along: listed, asked about, called, and forgotten again."""

import json
import logging
from pathlib import Path
from typing import Any

import openai
import pytest
from django.conf import settings
from django.db import connection
from openai import OpenAI

from chatcore.base.runner import turn_runner
from chatcore.contrib.compat.models import StoredResponse
from chatcore.models import McpServer, Message, Session, Turn
from chatcore.sessions import verification
from compaction.models import CompactionPolicy
from models_registry.models import AiModel
from tests.support.database import read_file
from tests.support.mcp_server import ToolServer, running, tool_server
from tests.support.open_responses import (
    MODEL,
    WEATHER,
    check_stream,
    read_events,
)
from tests.support.openai_client import client, list_completions
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

__all__ = ["client", "running", "tool_server"]

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "secret-word-of-the-person"
READ = "mcp__my_files__read"
READ_CALL = make_tool_call(READ, {"path": "a.txt"}, id="call_read")
OSLO = make_tool_call("weather", {"city": "Oslo"}, id="call_oslo")


@pytest.fixture(autouse=True)
def nothing_leaks(client: OpenAI, caplog: pytest.LogCaptureFixture) -> Any:
    """Sessions stay sound, secrets are in no log, and no ended turn has any."""
    with caplog.at_level(logging.DEBUG):
        yield
        turn_runner.drain()
    for session in Session.objects.all():
        assert list(verification.find_violations(session)) == []
    assert SECRET not in caplog.text
    assert SECRET not in json.dumps(list(StoredResponse.objects.values_list("request", flat=True)))
    ended_servers = McpServer.objects.exclude(turn__status__in=Turn.OPEN_STATUSES)
    assert {*ended_servers.values_list("encrypted_headers", "url")} <= {("", "")}
    if connection.vendor == "sqlite":  # its log keeps rows that were overwritten
        database = Path(connection.settings_dict["NAME"])
        files = [*database.parent.glob(f"{database.name}*")]
        assert files
        assert [file for file in files if SECRET.encode() in read_file(file)] == []


def build_server(tool_server: ToolServer, **other: Any) -> Any:
    return {
        "type": "mcp",
        "server_label": "my_files",
        "server_url": f"{tool_server.url}?key={SECRET}",
        "headers": {"X-Word": SECRET},
        "authorization": SECRET,
        "require_approval": "never",
        **other,
    }


def ask(client: OpenAI, *tools: Any, **other: Any) -> Any:
    body = {"model": MODEL, "input": "Read it.", "tools": list(tools), **other}
    return client.responses.create(**body)


def answer_question(client: OpenAI, asked: Any, **other: Any) -> Any:
    [request] = [item for item in asked.output if item.type == "mcp_approval_request"]
    word = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
    body: Any = {"model": MODEL, "input": [word | other], "previous_response_id": asked.id}
    return client.responses.create(**body)


def types_of(response: Any) -> list[str]:
    return [item.type for item in response.output]


@pytest.mark.parametrize("stored", [True, False])
def test_tools_are_listed_called_and_answered(
    client: OpenAI, scripted: ScriptedModel, tool_server: ToolServer, stored: bool
) -> None:
    scripted.script(Reply(text="Let me look.", tool_calls=[READ_CALL]), Reply(text="Hello."))
    response = ask(client, build_server(tool_server), store=stored)
    assert types_of(response) == ["mcp_list_tools", "message", "mcp_call", "message"]
    listed, _, call, _ = response.output
    assert (listed.server_label, listed.error) == ("my_files", None)
    assert [tool.name for tool in listed.tools] == ["read", "wait", "dump", "fail"]
    assert (call.name, call.server_label, call.status) == ("read", "my_files", "completed")
    assert (call.output, call.error) == ("The text of a.txt.", None)
    assert json.loads(call.arguments) == {"path": "a.txt"}
    assert tool_server.calls == [("read", "a.txt")]
    for headers in tool_server.headers:
        assert (headers["authorization"], headers["x-word"]) == (f"Bearer {SECRET}", SECRET)
    assert SECRET not in response.to_json()
    assert response.tools[0].server_url == "http://127.0.0.1/<redacted>"
    offered = list_completions(scripted)[0].json["tools"]
    assert {tool["function"]["name"] for tool in offered} == {
        READ,
        "mcp__my_files__wait",
        "mcp__my_files__dump",
        "mcp__my_files__fail",
    }
    if stored:
        assert client.responses.retrieve(response.id).output == response.output
        Session.objects.get().delete()
    assert not McpServer.objects.exists()


def test_a_call_waits_for_a_word_and_runs_after_it(
    client: OpenAI, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    scripted.script(Reply(tool_calls=[READ_CALL]), Reply(text="Hello."))
    asked = ask(client, build_server(tool_server, require_approval="always"))
    assert types_of(asked) == ["mcp_list_tools", "mcp_approval_request"]
    assert (asked.status, asked.output[1].name) == ("completed", "read")
    assert tool_server.calls == []
    answered = answer_question(client, asked)
    assert types_of(answered) == ["mcp_call", "message"]
    call = answered.output[0]
    assert (call.output, call.approval_request_id) == ("The text of a.txt.", asked.output[1].id)
    assert client.responses.retrieve(asked.id).output == asked.output
    assert client.responses.retrieve(answered.id).output == answered.output
    [word] = client.responses.input_items.list(answered.id).data
    assert (word.type, word.approve) == ("mcp_approval_response", True)  # type: ignore[union-attr]
    conversation = f"conv_{Session.objects.get().pk.hex}"
    items: list[Any] = client.conversations.items.list(conversation, order="asc").data
    assert [item.type for item in items] == [
        "message",
        "mcp_approval_request",
        "mcp_call",
        "message",
    ]
    with pytest.raises(openai.BadRequestError, match="No call waits for this approval"):
        answer_question(client, asked)


def test_a_refused_call_is_not_made_and_its_person_may_say_something_else(
    client: OpenAI, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    scripted.script(Reply(tool_calls=[READ_CALL]), Reply(text="As you like."))
    asked = ask(client, build_server(tool_server, require_approval="always"))
    refused = answer_question(client, asked, approve=False)
    assert types_of(refused) == ["mcp_call", "message"]
    assert (refused.output[0].status, refused.output[0].output) == ("failed", None)
    assert "did not allow" in str(refused.output[0].error)
    scripted.script(Reply(tool_calls=[READ_CALL]), Reply(text="Then not."))
    asked = ask(client, build_server(tool_server, require_approval="always"))
    [request] = [item for item in asked.output if item.type == "mcp_approval_request"]
    word: Any = {
        "type": "mcp_approval_response",
        "approval_request_id": request.id,
        "approve": False,
    }
    gone_on = client.responses.create(
        model=MODEL,
        previous_response_id=asked.id,
        input=[word, {"role": "user", "content": "Tell me a story."}],
    )
    assert gone_on.output_text == "Then not."
    sent = list_completions(scripted)[-1].json["messages"]
    # Without tools in the request, the call and its refusal are told in words.
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert tool_server.calls == []


def test_a_word_is_asked_for_by_tool_and_beside_a_function(
    client: OpenAI, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    dump = make_tool_call("mcp__my_files__dump", {"size": 3}, id="call_dump")
    scripted.script(Reply(tool_calls=[READ_CALL, dump, OSLO]), Reply(text="All of it."))
    approval = {"never": {"tool_names": ["dump"]}}
    server = build_server(tool_server, require_approval=approval, allowed_tools=["read", "dump"])
    asked = ask(client, server, WEATHER)
    assert types_of(asked) == [
        "mcp_list_tools",
        "function_call",
        "mcp_approval_request",
        "mcp_call",
    ]
    assert [tool.name for tool in asked.output[0].tools] == ["read", "dump"]
    assert asked.output[3].output == "xxx"
    with pytest.raises(openai.BadRequestError, match="No tool output found"):
        answer_question(client, asked)
    output: Any = {"type": "function_call_output", "call_id": "call_oslo", "output": "9"}
    with pytest.raises(openai.BadRequestError, match="No approval response found"):
        client.responses.create(model=MODEL, previous_response_id=asked.id, input=[output])
    word: Any = {
        "type": "mcp_approval_response",
        "approval_request_id": asked.output[2].id,
        "approve": True,
    }
    answered = client.responses.create(
        model=MODEL, previous_response_id=asked.id, input=[output, word], tools=[WEATHER, server]
    )
    assert types_of(answered) == ["mcp_call", "message"]
    assert tool_server.calls == [("dump", 3), ("read", "a.txt")]


def test_a_server_that_is_away_is_said_and_the_answer_is_written(
    client: OpenAI, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    settings.CHATCORE["FETCH_ALLOW_HOSTS"] = [tool_server.host, "127.0.0.1:9"]
    away = build_server(tool_server, server_url="http://127.0.0.1:9/mcp", server_label="away")
    scripted.script(Reply(text="Without it."))
    events = read_events(client, input="Hi", tools=[away])
    check_stream(events)
    types = [event["type"] for event in events]
    assert "response.mcp_list_tools.failed" in types
    assert events[-1]["response"]["output"][0]["error"]
    settings.CHATCORE["FETCH_ALLOW_HOSTS"] = []
    refused = ask(client, build_server(tool_server))
    assert "Port" in refused.output[0].error
    assert tool_server.headers == []


def test_calls_are_streamed_and_the_stream_is_the_same_later(
    client: OpenAI, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    fail = make_tool_call("mcp__my_files__fail", {"reason": "no disk"}, id="call_fail")
    scripted.script(Reply(text="Wait.", tool_calls=[READ_CALL, fail]), Reply(text="Half."))
    events = read_events(client, input="Read it.", tools=[build_server(tool_server)])
    check_stream(events)
    server_events = [event["type"] for event in events if "mcp" in event["type"]]
    assert sorted(server_events) == sorted(
        [
            "response.mcp_list_tools.in_progress",
            "response.mcp_list_tools.completed",
            *["response.mcp_call.in_progress"] * 2,
            *["response.mcp_call_arguments.delta"] * 2,
            *["response.mcp_call_arguments.done"] * 2,
            "response.mcp_call.completed",
            "response.mcp_call.failed",
        ]
    )
    output = events[-1]["response"]["output"]
    assert "no disk" in str(output[3]["error"])
    assert SECRET not in json.dumps(events)
    stored = client.responses.retrieve(events[-1]["response"]["id"])
    assert [item.id for item in stored.output] == [item["id"] for item in output]

    scripted.script(Reply(tool_calls=[READ_CALL]), Reply(text="Now."))
    asked = read_events(
        client, input="Again.", tools=[build_server(tool_server, require_approval="always")]
    )
    check_stream(asked)
    request = asked[-1]["response"]["output"][-1]
    word = {
        "type": "mcp_approval_response",
        "approval_request_id": request["id"],
        "approve": True,
    }
    answered = read_events(client, input=[word], previous_response_id=asked[-1]["response"]["id"])
    check_stream(answered)
    assert [item["type"] for item in answered[-1]["response"]["output"]] == ["mcp_call", "message"]


def test_a_response_in_the_background_asks_lists_and_waits(
    client: OpenAI, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    scripted.script(Reply(tool_calls=[READ_CALL]), Reply(text="Hello."))
    server = build_server(tool_server, require_approval="always")
    begun = ask(client, server, background=True)

    def retrieve(response_id: str) -> Any:
        return client.responses.retrieve(response_id)

    wait_until(lambda: retrieve(begun.id).status == "completed")
    asked = retrieve(begun.id)
    assert types_of(asked) == ["mcp_list_tools", "mcp_approval_request"]
    answered = answer_question(client, asked)
    assert answered.output_text == "Hello."


@pytest.mark.parametrize("stored", [True, False])
def test_a_whole_history_with_a_question_and_a_word_goes_on(
    client: OpenAI, scripted: ScriptedModel, tool_server: ToolServer, stored: bool
) -> None:
    scripted.script(
        Reply(tool_calls=[READ_CALL]), Reply(text="Hello."), Reply(text="You are welcome.")
    )
    server = build_server(tool_server, require_approval="always")
    items: list[Any] = [{"role": "user", "content": "Read it."}]
    asked = ask(client, server, input=items, store=stored)
    assert types_of(asked) == ["mcp_list_tools", "mcp_approval_request"]
    items += [item.to_dict() for item in asked.output]
    items.append(
        {
            "type": "mcp_approval_response",
            "approval_request_id": asked.output[1].id,
            "approve": True,
        }
    )
    answered = ask(client, server, input=items, store=stored)
    assert answered.output_text == "Hello."
    assert "mcp_call" in types_of(answered)
    items += [item.to_dict() for item in answered.output]
    items.append({"role": "user", "content": "Thanks."})
    last = ask(client, server, input=items, store=stored)
    assert last.output_text == "You are welcome."
    assert tool_server.calls == [("read", "a.txt")]
    sent = list_completions(scripted)[-1].json["messages"]
    roles = [message["role"] for message in sent if message["role"] != "system"]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert Session.objects.count() == int(stored)


def test_a_long_output_is_cut_and_kept(
    client: OpenAI, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    limits = {"limit": 1_000, "keep": "tail", "marker": "\n[{kept} of {total}]", "spill": True}
    CompactionPolicy.objects.create(
        name="spilling", base="oneclaw", overrides={"tool_result": limits}
    )
    AiModel.objects.update(policy="spilling")
    dump = make_tool_call("mcp__my_files__dump", {"size": 40_000}, id="call_dump")
    scripted.script(Reply(tool_calls=[dump]), Reply(text="Much."))
    response = ask(client, build_server(tool_server))
    assert "[1000 of 40000]" in response.output[1].output
    row = Message.objects.get(role=Message.Role.TOOL)
    assert (row.original_chars, row.attachments.count()) == (40_000, 1)
    assert row.attachments.get().size == 40_000


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"server_url": "stdio:files"}, "tools[0].server_url"),
        ({"server_url": None}, "tools[0].server_url"),
        ({"connector_id": "connector_gmail"}, "tools[0].connector_id"),
        ({"server_label": "two__words"}, "tools[0].server_label"),
        ({"headers": {"Host": "elsewhere"}}, "tools[0].headers"),
        ({"headers": {"Authorization": "x"}}, "tools[0].authorization"),
        ({"require_approval": "sometimes"}, "tools[0].require_approval"),
        ({"allowed_tools": [1]}, "tools[0].allowed_tools[0]"),
        ({"allowed_tools": {"tool_names": "a"}}, "tools[0].allowed_tools.tool_names"),
        ({"require_approval": {"often": ["a"]}}, "tools[0].require_approval.often"),
    ],
)
def test_a_wrong_server_is_refused_by_its_field(
    client: OpenAI, tool_server: ToolServer, change: Any, field: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, build_server(tool_server, **change))
    assert caught.value.param == field
    assert SECRET not in str(caught.value)
    assert not Session.objects.exists()


def test_a_choice_may_name_a_server_and_its_tool(
    client: OpenAI, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    choice: Any = {"type": "mcp", "server_label": "my_files", "name": "read"}
    response = ask(client, build_server(tool_server), tool_choice=choice)
    assert list_completions(scripted)[-1].json["tool_choice"]["function"]["name"] == READ
    assert response.tool_choice.to_dict() == choice
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "x"}]}
    ask(client, build_server(tool_server), tool_choice=choice)
    assert "tools" not in list_completions(scripted)[-1].json

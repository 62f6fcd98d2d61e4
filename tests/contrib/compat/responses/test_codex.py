"""Codex CLI with its default settings: its requests as it sent them, for each kind of model.

What it sends depends on the name of the model: tools in namespaces, tools that take a text, tools
in an item of the input, searches for tools, and what agents write to each other.
"""

import json
import logging
from typing import Any

import pytest
from openai import OpenAI

from chatcore.contrib.compat import known_types
from models_registry.models import AiModel
from tests.support.open_responses import MODEL, WEATHER, parse_events
from tests.support.openai_client import client, list_completions
from tests.support.recorded_programs import load_recording, send_recording
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)
PATCH = "*** Begin Patch\n*** Add File: b.txt\n+hi\n*** End Patch\n"
STORED = (False, True)


@pytest.fixture(autouse=True)
def widen_window(model: AiModel) -> None:
    """Codex sends 12,000 tokens of its own with each request."""
    AiModel.objects.filter(pk=model.pk).update(context_window_size=65_536)


def send(
    client: OpenAI, scripted: ScriptedModel, name: str, **members: Any
) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, str]]:
    """Return the items of the answer, what the provider received, and the headers."""
    response = send_recording(client, load_recording(name), model=MODEL, **members)
    assert response.status_code == 200, response.text
    items = parse_events(response.text)[-1]["response"]["output"]
    return items, list_completions(scripted)[-1].json, dict(response.headers)


def list_tools(sent: dict[str, Any]) -> dict[str, Any]:
    return {tool["function"]["name"]: tool["function"] for tool in sent.get("tools", [])}


@pytest.mark.parametrize("store", STORED)
def test_tools_of_a_namespace_are_called_by_it(
    client: OpenAI, scripted: ScriptedModel, store: bool
) -> None:
    call = make_tool_call("multi_agent_v1__spawn_agent", {"message": "Count."})
    scripted.script(Reply(tool_calls=[call]))
    items, sent, headers = send(client, scripted, "codex-0.171.0-unknown-model", store=store)
    tools = list_tools(sent)
    assert {"exec_command", "multi_agent_v1__spawn_agent"} <= tools.keys()
    assert "message" in tools["multi_agent_v1__spawn_agent"]["parameters"]["properties"]
    assert (items[0]["namespace"], items[0]["name"]) == ("multi_agent_v1", "spawn_agent")
    assert headers["x-ignored-fields"] == "tools.web_search"


@pytest.mark.parametrize("store", STORED)
def test_a_tool_that_takes_a_text_is_called_with_one(
    client: OpenAI, scripted: ScriptedModel, store: bool
) -> None:
    scripted.script(Reply(tool_calls=[make_tool_call("apply_patch", {"input": PATCH})]))
    items, sent, _ = send(client, scripted, "codex-0.171.0-gpt-5.5", store=store)
    patch_tool = list_tools(sent)["apply_patch"]
    assert "begin_patch" in patch_tool["description"]  # the grammar
    assert patch_tool["parameters"]["required"] == ["input"]
    assert (items[0]["type"], items[0]["name"]) == ("custom_tool_call", "apply_patch")
    assert items[0]["input"] == PATCH


def test_a_text_without_json_around_it_is_the_input(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=[make_tool_call("apply_patch", PATCH)]))
    items, _, _ = send(client, scripted, "codex-0.171.0-gpt-5.5")
    assert items[0]["input"] == PATCH


def test_earlier_calls_of_every_form_stay_in_their_place(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    _, sent, _ = send(client, scripted, "codex-0.171.0-gpt-5.5")
    calls = [
        call["function"] for message in sent["messages"] for call in message.get("tool_calls", [])
    ]
    assert [call["name"] for call in calls] == [
        "apply_patch",
        "tool_search",
        "exec_command",
        "multi_agent_v1__list_agents",
    ]
    assert json.loads(calls[0]["arguments"]) == {"input": PATCH}
    results = [message["content"] for message in sent["messages"] if message["role"] == "tool"]
    assert "Success" in results[0]
    assert "multi_agent_v1__spawn_agent" in results[1]
    # What was found can be called from now on.
    assert "multi_agent_v1__spawn_agent" in list_tools(sent)


def test_the_client_searches_for_tools(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(tool_calls=[make_tool_call("tool_search", {"query": "agents"})]))
    items, _, _ = send(client, scripted, "codex-0.171.0-gpt-5.5")
    assert items[0]["type"] == "tool_search_call"
    assert (items[0]["execution"], items[0]["arguments"]) == ("client", {"query": "agents"})


@pytest.mark.parametrize("store", STORED)
def test_tools_in_an_item_of_the_input_are_offered(
    client: OpenAI, scripted: ScriptedModel, store: bool
) -> None:
    scripted.script(Reply(tool_calls=[make_tool_call("functions__exec", {"input": "text(1)"})]))
    items, sent, _ = send(client, scripted, "codex-0.171.0-gpt-5.6-sol", store=store)
    assert {"functions__exec", "functions__wait", "collaboration__spawn_agent"} <= set(
        list_tools(sent)
    )
    assert items[0] | {"id": "", "call_id": ""} == {
        "id": "",
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": "",
        "name": "exec",
        "namespace": "functions",
        "input": "text(1)",
    }


def test_a_subagent_reads_its_task(client: OpenAI, scripted: ScriptedModel) -> None:
    _, sent, _ = send(client, scripted, "codex-0.171.0-subagent")
    assert sent["messages"][-1]["role"] == "user"
    assert sent["messages"][-1]["content"].endswith("CHILD: tell 42")


def test_the_next_response_takes_the_output_of_a_custom_call(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    call = make_tool_call("functions__exec", {"input": "text(1)"}, id="call_exec")
    scripted.script(Reply(tool_calls=[call]), Reply(text="Done."))
    first = send_recording(
        client, load_recording("codex-0.171.0-gpt-5.6-sol"), model=MODEL, store=True, stream=False
    ).json()
    output: Any = {"type": "custom_tool_call_output", "call_id": "call_exec", "output": "1"}
    second = client.responses.create(model=MODEL, previous_response_id=first["id"], input=[output])
    assert second.output_text == "Done."
    page = client.responses.input_items.list(second.id)
    assert [item.type for item in page.data] == ["custom_tool_call_output"]


def test_what_no_table_knows_is_left_out_named_and_logged_once(
    client: OpenAI, scripted: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    recording = load_recording("codex-0.171.0-gpt-5.5")
    known_types.log_unknown.cache_clear()
    body = recording["body"]
    body["tools"].append({"type": "telepathy", "range": "far"})
    body["input"].insert(1, {"type": "mood_ring", "color": "green"})
    with caplog.at_level(logging.WARNING, "chatcore"):
        for _ in range(2):
            response = send_recording(client, recording, model=MODEL)
            assert response.status_code == 200, response.text
    ignored = response.headers["x-ignored-fields"].split(", ")
    assert {"tools.telepathy", "tools.web_search", "input.mood_ring"} == set(ignored)
    assert sum("telepathy" in record.getMessage() for record in caplog.records) == 1


def test_calls_of_an_older_form_keep_what_came_of_them(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    action = {"type": "exec", "command": ["ls"], "env": {}}
    items: list[Any] = [
        {"role": "user", "content": "Which files?"},
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "action": action},
        {"type": "local_shell_call_output", "call_id": "c1", "output": "notes.txt"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"role": "user", "content": "And now?"},
    ]
    client.responses.create(model=MODEL, tools=[WEATHER], input=items)
    messages = list_completions(scripted)[-1].json["messages"]
    call = messages[1]["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("local_shell", {"action": action})
    assert messages[2]["content"] == "notes.txt"

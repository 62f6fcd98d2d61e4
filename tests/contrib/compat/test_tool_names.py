"""Names and numbers of tools: what providers refuse is fitted, and clients get back what they sent.

A program behind a gateway names tools after their servers, and loads those of all servers at once.
"""

from typing import Any, cast

import pytest
from anthropic import Anthropic
from openai import OpenAI

from chatcore.models import Session
from tests.support.anthropic_client import gpt
from tests.support.openai_client import MODEL, client, list_completions
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)
LONG_NAME = "mcp__plugin_developer-tools_chrome-devtools__performance_analyze_insight"
NAMES = (LONG_NAME, "files.read", "Datei öffnen", "mcp__" + "a_long_name_of_a_server_" * 12)
QUESTION: Any = [{"role": "user", "content": "Analyze it."}]


def build_function(name: str) -> Any:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def call_first_tool(request: dict[str, Any]) -> Reply:
    """Call the first tool by the name under which the request has it."""
    name = request["tools"][0]["function"]["name"]
    return (
        Reply(tool_calls=[make_tool_call(name)])
        if len(request["messages"]) == 1
        else Reply(text="Done.")
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("session", ["", "named"])
def test_a_name_that_providers_refuse_comes_back_as_it_was_sent(
    client: OpenAI, scripted: ScriptedModel, name: str, session: str
) -> None:
    scripted.default = call_first_tool
    headers = {"X-Session-Id": session} if session else {}
    tools = [build_function(name)]
    first = client.chat.completions.create(
        model=MODEL, messages=QUESTION, tools=tools, extra_headers=headers
    )
    answer = first.choices[0].message
    assert answer.tool_calls
    assert answer.tool_calls[0].function.name == name  # type: ignore[union-attr]
    result: Any = {"role": "tool", "tool_call_id": answer.tool_calls[0].id, "content": "Fast."}
    client.chat.completions.create(
        model=MODEL,
        messages=[*QUESTION, cast(Any, answer.model_dump(exclude_none=True)), result],
        tools=tools,
        extra_headers=headers,
    )
    sent = list_completions(scripted)[-1].json
    sent_name = sent["tools"][0]["function"]["name"]
    assert len(sent_name) <= 64
    assert sent_name.replace("_", "").replace("-", "").isalnum()
    assert sent_name.isascii()
    assert sent["messages"][1]["tool_calls"][0]["function"]["name"] == sent_name
    assert Session.objects.count() == 1  # one without a name is kept from its first result on


def test_two_long_names_stay_two(client: OpenAI, scripted: ScriptedModel) -> None:
    tools = [build_function(f"{LONG_NAME}_{number}") for number in range(2)]
    choice: Any = {"type": "function", "function": {"name": f"{LONG_NAME}_1"}}
    client.chat.completions.create(model=MODEL, messages=QUESTION, tools=tools, tool_choice=choice)
    sent = list_completions(scripted)[-1].json
    names = [tool["function"]["name"] for tool in sent["tools"]]
    assert len(set(names)) == 2
    assert sent["tool_choice"]["function"]["name"] == names[1]


def test_messages_give_a_long_name_back(gpt: Anthropic, scripted: ScriptedModel) -> None:
    scripted.default = call_first_tool
    answer = gpt.messages.create(
        model=MODEL,
        max_tokens=100,
        messages=QUESTION,
        tools=[{"name": LONG_NAME, "input_schema": {"type": "object"}}],
    )
    assert [block.name for block in answer.content if block.type == "tool_use"] == [LONG_NAME]


def test_the_number_of_tools_is_left_to_the_provider(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    tools = [build_function(f"tool_{number}") for number in range(300)]
    client.chat.completions.create(model=MODEL, messages=QUESTION, tools=tools)
    assert len(list_completions(scripted)[-1].json["tools"]) == 300


@pytest.mark.parametrize("session", ["", "named"])
def test_a_custom_tool_of_chat_completions_takes_a_text(
    client: OpenAI, scripted: ScriptedModel, session: str
) -> None:
    grammar = {"syntax": "lark", "definition": "start: WORD"}
    tool: Any = {
        "type": "custom",
        "custom": {"name": "say", "format": {"type": "grammar", "grammar": grammar}},
    }
    scripted.script(
        Reply(tool_calls=[make_tool_call("say", {"input": "hello"})]), Reply(text="Done.")
    )
    headers = {"X-Session-Id": session} if session else {}
    first = client.chat.completions.create(
        model=MODEL, messages=QUESTION, tools=[tool], extra_headers=headers
    )
    answer = first.choices[0].message
    assert answer.tool_calls
    call: Any = answer.tool_calls[0]
    assert (call.type, call.custom.name, call.custom.input) == ("custom", "say", "hello")
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "Said."}
    client.chat.completions.create(
        model=MODEL,
        messages=[*QUESTION, cast(Any, answer.model_dump(exclude_none=True)), result],
        tools=[tool],
        extra_headers=headers,
    )
    sent = list_completions(scripted)[-1].json
    assert "start: WORD" in sent["tools"][0]["function"]["description"]
    function = sent["messages"][1]["tool_calls"][0]["function"]
    assert (function["name"], function["arguments"]) == ("say", '{"input": "hello"}')


def test_a_tool_of_an_unknown_type_is_left_out_and_named(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL,
        messages=QUESTION,
        tools=[{"type": "telepathy"}, build_function("look")],  # type: ignore[list-item]
    )
    assert raw.headers["X-Ignored-Fields"] == "tools.telepathy"
    assert len(list_completions(scripted)[-1].json["tools"]) == 1

"""What the next version of a coding program may send: nothing of it ends a conversation."""

import logging
from typing import Any

import httpx
import pytest
from openai import OpenAI

from chatcore.base.runner import turn_runner
from tests.support.anthropic_client import list_calls, speak_anthropic
from tests.support.http_client import http
from tests.support.openai_client import MODEL, client, list_completions
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)
HI = {"role": "user", "content": "Hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": {"a": 1}}}
OPENCODE = {"user-agent": "opencode/2.0.0"}
CLAUDE_CODE = {"x-claude-code-session-id": "s1"}


def post(
    client: OpenAI, path: str, headers: dict[str, str] | None = None, **members: Any
) -> httpx.Response:
    response = http.post(
        str(client.base_url).removesuffix("/v1/") + path,
        headers={"authorization": f"Bearer {client.api_key}"} | (headers or {}),
        json={"model": MODEL, "max_tokens": 100} | members,
        timeout=60,
    )
    turn_runner.drain()
    return response


@pytest.mark.parametrize(
    ("path", "headers"), [("/v1/chat/completions", OPENCODE), ("/v1/messages", CLAUDE_CODE)]
)
def test_an_unknown_field_of_a_coding_program_is_left_out_and_named(
    client: OpenAI,
    scripted: ScriptedModel,
    caplog: pytest.LogCaptureFixture,
    path: str,
    headers: dict[str, str],
) -> None:
    members: dict[str, Any] = {f"field_of_{path[4:8]}": {"a": 1}}
    [name] = members
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            response = post(client, path, headers, messages=[HI], **members)
            assert response.status_code == 200, response.text
            assert name in response.headers["x-ignored-fields"]
    assert caplog.text.count(f"'{name}' are not known") == 1
    assert name not in list_completions(scripted)[-1].json
    response = post(client, path, messages=[HI], **members)
    assert response.status_code == 400
    assert name in response.json()["error"]["message"]


def test_an_unknown_edit_of_the_context_is_left_out(client: OpenAI) -> None:
    edits = [{"type": "new_edit_20270101"}, {"type": "clear_thinking_20251015", "keep": "all"}]
    members: dict[str, Any] = {"messages": [HI], "context_management": {"edits": edits}}
    response = post(client, "/v1/messages", CLAUDE_CODE, **members)
    assert response.status_code == 200, response.text
    assert "context_management.new_edit_20270101" in response.headers["x-ignored-fields"]
    assert post(client, "/v1/messages", **members).status_code == 400


def test_an_unknown_part_of_an_item_is_left_out(client: OpenAI, scripted: ScriptedModel) -> None:
    new_part = {"type": "input_hologram", "hologram": "x"}
    text_part = {"type": "input_text", "text": "Look."}
    items = [
        {"role": "user", "content": [new_part, text_part]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [text_part, new_part]},
    ]
    tools = [{"type": "function", "name": "look"}]
    response = post(client, "/v1/responses", input=items, tools=tools)
    assert response.status_code == 200, response.text
    assert response.headers["x-ignored-fields"] == "input.content.input_hologram"
    sent = list_completions(scripted)[-1].json["messages"]
    assert [message["content"] for message in sent if message["role"] != "assistant"] == [
        "Look.",
        "Look.",
    ]
    audio = [{"role": "user", "content": [{"type": "input_audio"}]}]
    assert post(client, "/v1/responses", input=audio).status_code == 400


def test_values_that_are_objects_in_place_of_texts(client: OpenAI, scripted: ScriptedModel) -> None:
    output = {"content": "Seen.", "success": True}
    items = [
        HI,
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": output},
    ]
    assert post(client, "/v1/responses", input=items).status_code == 200
    assert "Seen." in list_completions(scripted)[-1].json["messages"][-1]["content"]
    result = {"role": "tool", "tool_call_id": "c1", "content": "Seen."}
    messages = [HI, {"role": "assistant", "tool_calls": [CALL]}, result]
    tools = [{"type": "function", "function": {"name": "look"}}]
    response = post(client, "/v1/chat/completions", messages=messages, tools=tools)
    assert response.status_code == 200, response.text
    sent = list_completions(scripted)[-1].json["messages"]
    [calls] = [message["tool_calls"] for message in sent if message.get("tool_calls")]
    assert calls[0]["function"]["arguments"] == '{"a": 1}'
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": None}
    results = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]}
    messages = [HI, {"role": "assistant", "content": [call]}, results]
    assert post(client, "/v1/messages", messages=messages).status_code == 200


LOOK = {"name": "look", "parameters": {"type": "object"}}
TOOLS: dict[str, Any] = {
    "/v1/chat/completions": [{"type": "function", "function": LOOK}],
    "/v1/messages": [{"name": "look", "input_schema": {"type": "object"}}],
    "/v1/responses": [{"type": "function"} | LOOK],
}
all_paths = pytest.mark.parametrize("path", TOOLS)
both_protocols = pytest.mark.parametrize("protocol", ["openai", "anthropic"])


def write_messages(path: str, *contents: Any) -> dict[str, Any]:
    """Return the member of a request that has these contents, the user's first."""
    roles = ("user", "assistant")
    messages = [
        {"role": roles[index % 2], "content": content} for index, content in enumerate(contents)
    ]
    return {"input" if path == "/v1/responses" else "messages": messages}


def get_last_messages(scripted: ScriptedModel) -> str:
    return str(list_calls(scripted)[-1].json["messages"])


@all_paths
@both_protocols
@pytest.mark.parametrize("name", ["", "trip"])
def test_a_choice_of_an_unknown_type_is_left_out(
    client: OpenAI, scripted: ScriptedModel, path: str, protocol: str, name: str
) -> None:
    if protocol == "anthropic":
        speak_anthropic(scripted)
    headers = {"x-session-id": name} if name else {}
    members = write_messages(path, "Hi") | {"tools": TOOLS[path]}
    response = post(client, path, headers, **members, tool_choice={"type": "next_year"})
    assert response.status_code == 200, response.text
    assert response.headers["x-ignored-fields"] == "tool_choice.next_year"
    assert "next_year" not in str(list_calls(scripted)[-1].json)


@both_protocols
def test_only_allowed_tools_are_offered_over_chat_completions(
    client: OpenAI, scripted: ScriptedModel, protocol: str
) -> None:
    if protocol == "anthropic":
        speak_anthropic(scripted)
    allowed = {"mode": "required", "tools": TOOLS["/v1/chat/completions"]}
    other = {"type": "function", "function": {"name": "other"}}
    response = post(
        client,
        "/v1/chat/completions",
        messages=[HI],
        tools=[*TOOLS["/v1/chat/completions"], other],
        tool_choice={"type": "allowed_tools", "allowed_tools": allowed},
    )
    assert response.status_code == 200, response.text
    sent = list_calls(scripted)[-1].json
    assert len(sent["tools"]) == 1
    assert sent["tool_choice"] == ("required" if protocol == "openai" else {"type": "any"})


@all_paths
@pytest.mark.parametrize("name", ["", "trip"])
def test_a_message_of_unknown_parts_alone_is_answered(
    client: OpenAI, scripted: ScriptedModel, path: str, name: str
) -> None:
    headers = {"x-session-id": name} if name else {}
    part = {"type": "hologram", "hologram": "x"}
    first = post(client, path, headers, **write_messages(path, [part]))
    assert first.status_code == 200, first.text
    answer = "Hello from the scripted model."
    contents = (["Hi", answer, [part]], ["Hi", answer, [part], answer, "And now?"])
    for messages in contents:
        response = post(client, path, headers, **write_messages(path, *messages))
        assert response.status_code == 200, response.text
        assert "hologram" in response.headers["x-ignored-fields"]
        assert "[Left out, because it is not supported here: hologram]" in get_last_messages(
            scripted
        )
    assert "And now?" in get_last_messages(scripted)


def test_a_call_of_an_unknown_type_is_left_out(client: OpenAI, scripted: ScriptedModel) -> None:
    calls = [CALL, {"id": "c2", "type": "zap", "zap": {"x": 1}}]
    results = [{"role": "tool", "tool_call_id": id, "content": f"of {id}"} for id in ("c1", "c2")]
    response = post(
        client,
        "/v1/chat/completions",
        messages=[HI, {"role": "assistant", "tool_calls": calls}, *results],
        tools=TOOLS["/v1/chat/completions"],
    )
    assert response.status_code == 200, response.text
    assert response.headers["x-ignored-fields"] == "messages.tool_calls.zap"
    sent = list_completions(scripted)[-1].json["messages"]
    assert "of c1" in str(sent)
    assert "zap" not in str(sent)


@pytest.mark.parametrize("mark", [{"type": "persistent"}, {"type": "ephemeral", "ttl": "24h"}])
def test_an_unknown_mark_of_the_cache_is_left_out(
    client: OpenAI, scripted: ScriptedModel, mark: dict[str, str]
) -> None:
    speak_anthropic(scripted)
    text = {"type": "text", "text": "Hi", "cache_control": mark}
    response = post(
        client,
        "/v1/messages",
        system=[text],
        messages=[{"role": "user", "content": [text]}],
        tools=[TOOLS["/v1/messages"][0] | {"cache_control": mark}],
    )
    assert response.status_code == 200, response.text
    assert (
        response.headers["x-ignored-fields"]
        == "tools.cache_control, messages.content.cache_control"
    )
    assert "cache_control" not in str(list_calls(scripted)[-1].json)


@all_paths
@both_protocols
@pytest.mark.parametrize("name", ["", "trip"])
def test_a_parameter_that_the_provider_refuses_in_any_words_is_left_out_and_named(
    client: OpenAI, scripted: ScriptedModel, path: str, protocol: str, name: str
) -> None:
    if protocol == "anthropic":
        speak_anthropic(scripted)
    refusal = Reply(status=400, text="Das geht so nicht.")
    scripted.default = lambda body: refusal if "temperature" in body else Reply(text="Sure.")
    headers = {"x-session-id": name} if name else {}
    texts = ["Hi"]
    for question in ("And now?", "Bye."):
        response = post(client, path, headers, **write_messages(path, *texts), temperature=0.3)
        assert response.status_code == 200, response.text
        texts += ["Sure.", question]
    assert response.headers["x-ignored-fields"] == "temperature"
    refused = ["temperature" in call.json for call in list_calls(scripted)]
    assert (refused.count(True), refused[-1]) == (2, False)

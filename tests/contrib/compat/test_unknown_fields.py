"""What the next version of a coding program may send: nothing of it ends a conversation."""

import logging
from typing import Any

import httpx
import pytest
from openai import OpenAI

from chatcore.base.runner import turn_runner
from tests.support.http_client import http
from tests.support.openai_client import MODEL, client, list_completions
from tests.support.scripted_model import ScriptedModel

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

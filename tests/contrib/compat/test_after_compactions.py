"""What a compaction keeps over the compatible APIs, whose clients send the whole history."""

import base64
import json
import re
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.models import Session
from compaction.models import CompactionRun
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.compaction_sessions import SUMMARY
from tests.support.openai_client import MODEL, create_key
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

Body = dict[str, Any]
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
CONTRACT = "\n".join(f"Clause {n}: item {n} costs {n * 11} euros." for n in range(1, 121))
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
CODE = "```python\ndef check(ticket):\n    if ticket:\n        return 4711\n```"
CALLS = {
    "plan": make_tool_call("todo_write", {"todos": [f"task {n}" for n in range(12)]}, id="c1"),
    "secrets": make_tool_call("read_env", {"path": ".env"}, id="c2"),
}


def answer(body: Body) -> Reply:
    prompt = str(body["messages"][-1]["content"])
    if "<transcript>" in prompt:
        code = re.search(r"```python.*?```", prompt, re.DOTALL)
        return Reply(text=f"{SUMMARY}\n\n{code[0] if code else ''}")
    calls = [call for word, call in CALLS.items() if f"Use {word}." in prompt]
    return Reply(tool_calls=calls) if calls else Reply(text="I would look for flights. " * 8)


def write_question(path: str, text: str, file: str) -> Body:
    data = f"data:text/plain;base64,{base64.b64encode(file.encode()).decode()}"
    kind = "input_text" if path == RESPONSES else "text"
    files: dict[str, Body] = {
        CHAT: {"type": "file", "file": {"filename": "contract.txt", "file_data": data}},
        MESSAGES: {
            "type": "document",
            "title": "contract.txt",
            "source": {"type": "text", "media_type": "text/plain", "data": file},
        },
        RESPONSES: {"type": "input_file", "filename": "contract.txt", "file_data": data},
    }
    parts = [{"type": kind, "text": text}, *([files[path]] if file else [])]
    return {"role": "user", "content": parts}


def write_tool(path: str, name: str) -> Body:
    schema = {"type": "object", "properties": {}}
    if path == MESSAGES:
        return {"name": name, "description": name, "input_schema": schema}
    function = {"name": name, "description": name, "parameters": schema}
    if path == CHAT:
        return {"type": "function", "function": function}
    return {"type": "function", **function}


def write_result(path: str, call_id: str, text: str) -> Body:
    if path == CHAT:
        return {"role": "tool", "tool_call_id": call_id, "content": text}
    if path == RESPONSES:
        return {"type": "function_call_output", "call_id": call_id, "output": text}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return {"role": "user", "content": [result]}


class Client:
    """A client that sends the whole history with each request, and answers calls of tools."""

    def __init__(self, url: str, path: str, headers: dict[str, str]) -> None:
        self.url, self.path, self.headers = url, path, headers
        self.history: list[Body] = []

    def say(self, text: str, *, file: str = "", result: str = "done") -> None:
        self.history.append(write_question(self.path, text, file))
        while call_ids := self._post():
            self.history += [write_result(self.path, each, result) for each in call_ids]

    def _post(self) -> list[str]:
        body: Body = {
            "model": MODEL,
            "tools": [write_tool(self.path, name) for name in ("todo_write", "read_env")],
            "input" if self.path == RESPONSES else "messages": self.history,
        }
        if self.path == MESSAGES:
            body["max_tokens"] = 500
        response = httpx2.post(self.url + self.path, json=body, headers=self.headers, timeout=60)
        assert response.status_code == 200, response.text
        answer = response.json()
        if self.path == CHAT:
            message = answer["choices"][0]["message"]
            self.history.append({name: value for name, value in message.items() if value})
            return [call["id"] for call in message.get("tool_calls") or []]
        if self.path == MESSAGES:
            self.history.append({"role": "assistant", "content": answer["content"]})
            return [part["id"] for part in answer["content"] if part["type"] == "tool_use"]
        self.history += answer["output"]
        return [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
@pytest.mark.parametrize("policy", ["oneclaw", "chatcore"])
def test_plan_code_files_and_corrections_outlive_two_compactions(
    path: str,
    policy: str,
    user: User,
    model: AiModel,
    live: Live,
    scripted: ScriptedModel,
    api: APIClient,
) -> None:
    scripted.default = answer
    session = Session.objects.create(owner=user, model=model, policy=policy)
    headers = {"Authorization": f"Bearer {create_key(user)}", "X-Session-Id": str(session.pk)}
    client = Client(live.url, path, headers)
    client.say("The meeting with the auditors is on 14 March 2031.")
    client.say("Read this contract, please.", file=CONTRACT)
    client.say("Use plan.")
    client.say("Use secrets.", result=f"GITHUB_TOKEN={SECRET}\nDEBUG=1")
    client.say(f"We agreed on this function:\n{CODE}\n")
    client.say("Oops, I was wrong about the meeting with the auditors: it's on 21 March 2031.")
    client.say("My doctor's number is 555-0143, always remember that.")
    client.say("Please forget what I told you about my doctor.")
    for count in (14, 6):
        for number in range(count):
            client.say(f"Tell me more about street {number * 31} of Lisbon. " * 35)
        api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True})
    assert CompactionRun.objects.filter(status="applied").count() >= 2
    client.say("And now?")
    assert Session.objects.count() == 1

    request = next(
        call.json for call in reversed(scripted.requests) if "And now?" in str(call.json)
    )
    sent = "\n".join(str(message["content"]) for message in request["messages"])
    assert "task 11" in json.dumps(request["messages"])
    assert CODE in sent
    assert "contract.txt" in sent
    assert "read_attachment" in [tool["function"]["name"] for tool in request["tools"]]
    assert "555-0143" not in sent
    if policy == "chatcore":
        assert 0 < sent.find("21 March") < sent.find("14 March")
    prompts = [str(call.json) for call in scripted.requests if "<transcript>" in str(call.json)]
    assert all("[day: " in prompt for prompt in prompts)
    assert not [prompt for prompt in [*prompts, sent] if SECRET in prompt]

"""A program's request beside a conversation that is larger than its model's window."""

from typing import Any

import pytest
from openai import OpenAI

from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session
from tests.support.http_client import http
from tests.support.openai_client import MODEL, client, list_completions
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)

CODE = "ZEBRA-4711"
FIRST = f"Remember for later that my code is {CODE}. Describe Lisbon."
TOOL: dict[str, Any] = {"name": "Bash", "input_schema": {"type": "object"}}
CODEX_SUMMARY = {"x-codex-turn-metadata": '{"request_kind": "compaction"}'}
# By the API: its path, headers of its requests, and how it asks for a summary.
PROGRAMS: dict[str, tuple[str, dict[str, str], dict[str, str], str]] = {
    "Claude Code": (
        "messages",
        {"x-claude-code-session-id": "s1"},
        {},
        "Your task is to create a detailed summary of the conversation so far.",
    ),
    "Codex": (
        "responses",
        {"thread-id": "s1", "originator": "codex_exec"},
        CODEX_SUMMARY,
        "You are performing a CONTEXT CHECKPOINT COMPACTION.",
    ),
    "opencode": (
        "chat/completions",
        {"user-agent": "opencode/1", "x-session-affinity": "s1"},
        {},
        "Provide a detailed prompt for continuing our conversation above.",
    ),
    "Continue": (
        "chat/completions",
        {},
        {},
        "Please provide a concise summary of our conversation so far, capturing the key context, "
        "and keep it short.",
    ),
}


def answer(body: dict[str, Any]) -> Reply:
    if body.get("tools"):
        return Reply(text="Lisbon lies on seven hills. " * 80)
    return Reply(text=f"The user's code is {CODE}. They ask again and again about Lisbon.")


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_a_program_asks_beside_a_long_conversation_has_its_first_fact(
    client: OpenAI, scripted: ScriptedModel, program: str
) -> None:
    path, headers, summary_headers, prompt = PROGRAMS[program]
    scripted.default = answer
    history: list[dict[str, Any]] = []

    def ask(content: str, **more: str) -> None:
        history.append({"role": "user", "content": content})
        body: dict[str, Any] = {"model": MODEL, "tools": [build_tool(path)]}
        body["input" if path == "responses" else "messages"] = history
        if path == "messages":
            body["max_tokens"] = 500
        response = http.post(
            f"{client.base_url}{path}",
            json=body,
            headers={**headers, **more, "authorization": f"Bearer {client.api_key}"},
            timeout=60,
        )
        assert response.status_code == 200, response.text
        turn_runner.drain()
        history.append({"role": "assistant", "content": answer(body).text})

    ask(FIRST)
    for number in range(16):
        ask(f"{number}: And what else?")
    assert Session.objects.get().compact_boundary_seq
    count = Message.objects.count()
    ask(prompt, **summary_headers)
    sent = list_completions(scripted)[-1].json["messages"]
    assert prompt in str(sent[-1])
    assert CODE in str(sent)
    assert Message.objects.count() == count


def build_tool(path: str) -> dict[str, Any]:
    if path == "messages":
        return TOOL
    function = {"name": "Bash", "parameters": {"type": "object"}}
    if path == "responses":
        return {"type": "function", **function}
    return {"type": "function", "function": function}

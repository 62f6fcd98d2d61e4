"""A task of forty rounds of tools, seven times its window: the model still knows what was asked."""

from typing import Any

import pytest
from openai import OpenAI
from rest_framework.test import APIClient

from chatcore.models import Session
from tests.support.compaction_sessions import run_queued_compactions, summarize_or_chat
from tests.support.open_responses import MODEL
from tests.support.open_responses import WEATHER as WEATHER_ITEM
from tests.support.openai_client import (
    WEATHER,
    WINDOW,
    client,
    limit_window,
    list_completions,
    list_sizes,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 40
INSTRUCTION = "Look at Rome only, never at Oslo, and say how many days were dry."
RESULT = "sunny 21 degrees, " * 330  # 1,500 tokens


def slow(way: str) -> Any:
    return pytest.param(way, marks=pytest.mark.slow)


@pytest.fixture
def task(client: OpenAI, scripted: ScriptedModel) -> None:
    """A model that calls a tool forty times before it answers, in a small window."""
    rounds = iter(range(ROUNDS))

    def answer(request: dict[str, Any]) -> Reply:
        number = next(rounds, None)
        if number is None:
            return Reply(text="Forty days were dry.")
        return Reply(tool_calls=[make_tool_call("weather", {"day": number}, id=f"call_{number}")])

    def choose(request: dict[str, Any]) -> Reply:
        is_summary = "<transcript>" in str(request["messages"])
        return summarize_or_chat()(request) if is_summary else answer(request)

    limit_window(scripted, choose)


def check_requests(scripted: ScriptedModel) -> None:
    requests = [
        request.json
        for request in list_completions(scripted)
        if "<transcript>" not in str(request.json["messages"])
    ]
    assert len(requests) == ROUNDS + 1
    assert max(list_sizes(scripted)) <= WINDOW
    for request in requests:
        assert [
            message["content"]
            for message in request["messages"]
            if message["role"] == "user" and INSTRUCTION in message["content"]
        ]


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize(
    "way", ["previous response", slow("whole history"), slow("without storing")]
)
def test_responses_keep_the_task(
    client: OpenAI, task: None, scripted: ScriptedModel, way: str
) -> None:
    history: list[Any] = [{"role": "user", "content": INSTRUCTION}]
    new_items, previous_id = history, None
    while True:
        response: Any = client.responses.create(
            model=MODEL,
            input=new_items if way == "previous response" else history,
            previous_response_id=previous_id if way == "previous response" else None,
            store=way != "without storing",
            tools=[WEATHER_ITEM],
        )
        run_queued_compactions()
        previous_id = response.id
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            break
        new_items = [
            {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
            for call in calls
        ]
        history += [*response.output, *new_items]
    assert response.output_text == "Forty days were dry."
    check_requests(scripted)


@pytest.mark.parametrize("way", ["whole history", slow("results alone"), slow("without a session")])
@pytest.mark.slow
def test_chat_completions_keep_the_task(
    client: OpenAI, task: None, scripted: ScriptedModel, way: str
) -> None:
    history: list[Any] = [{"role": "user", "content": INSTRUCTION}]
    new_messages = history
    headers = {} if way == "without a session" else {"X-Session-Id": "the task"}
    while True:
        completion = client.chat.completions.create(
            model=MODEL,
            messages=new_messages if way == "results alone" else history,
            tools=[WEATHER],
            extra_headers=headers,
        )
        run_queued_compactions()
        answer: Any = completion.choices[0].message
        if not answer.tool_calls:
            break
        new_messages = [
            {"role": "tool", "tool_call_id": call.id, "content": RESULT}
            for call in answer.tool_calls
        ]
        history += [answer.model_dump(exclude_none=True), *new_messages]
    assert answer.content == "Forty days were dry."
    check_requests(scripted)


@pytest.mark.slow
def test_rest_keeps_the_task(
    api: APIClient, task: None, session: Session, scripted: ScriptedModel
) -> None:
    path = f"/api/v1/sessions/{session.pk}"
    body = {"content": INSTRUCTION, "tools": [{"name": "weather"}]}
    turn = api.post(f"{path}/messages", body).json()
    while turn["status"] == "waiting":
        run_queued_compactions()
        results = [
            {"tool_call_id": call["id"], "content": RESULT} for call in turn["requires_action"]
        ]
        turn = api.post(f"{path}/tool_results", {"results": results}).json()
    assert turn["assistant_message"]["content"] == "Forty days were dry."
    check_requests(scripted)

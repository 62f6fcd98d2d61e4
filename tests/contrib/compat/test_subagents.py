"""Subagents of coding programs: each has its own thread below the conversation that started it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.base.runner import turn_runner
from chatcore.models import Session, Turn
from chatcore.sessions import verification
from chatcore.sessions.deletion import delete_session
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.anthropic_client import WEATHER as WEATHER_OF_ANTHROPIC
from tests.support.anthropic_client import create_client as create_anthropic_client
from tests.support.openai_client import (
    MODEL,
    WEATHER,
    create_client,
    list_completions,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
APIS = ("chat_completions", "messages", "responses")
NAMED = {"X-Session-Id": "trip"}
AGENTS = ("a1", "a2", "a3")
QUESTION = "Ask your agents for the weather."
CALLS = tuple(f"call_{agent}" for agent in AGENTS)
Ask = Callable[[list[Any], dict[str, str]], str]


def name_agent(agent: str) -> dict[str, str]:
    return {**NAMED, "x-claude-code-agent-id": agent}


class Program:
    """A program that speaks one of the three APIs."""

    def __init__(self, api: str, live: Live, user: User) -> None:
        self.api = api
        self._openai = create_client(live.url, user)
        self._anthropic = create_anthropic_client(live.url, user)

    def ask(self, messages: list[Any], headers: dict[str, str]) -> Any:
        """Return the items, blocks or message of the answer."""
        if self.api == "responses":
            tool: Any = {"type": "function", **WEATHER["function"]}
            return self._openai.responses.create(
                model=MODEL, input=messages, tools=[tool], store=False, extra_headers=headers
            ).output
        if self.api == "messages":
            return self._anthropic.messages.create(
                model=MODEL,
                max_tokens=500,
                messages=messages,
                tools=[WEATHER_OF_ANTHROPIC],
                extra_headers=headers,
            ).content
        answer = self._openai.chat.completions.create(
            model=MODEL, messages=messages, tools=[WEATHER], extra_headers=headers
        )
        return answer.choices[0].message

    def read_text(self, answer: Any) -> str:
        if self.api == "responses":
            return str(answer[-1].content[0].text)
        return str(answer[-1].text if self.api == "messages" else answer.content)

    def add_results(self, messages: list[Any], answer: Any, results: list[str]) -> list[Any]:
        """Return the history with an answer that calls tools, and their results."""
        pairs = list(zip(CALLS, results, strict=True))
        if self.api == "responses":
            calls = [item.model_dump(exclude_none=True) for item in answer]
            outputs = [
                {"type": "function_call_output", "call_id": call, "output": result}
                for call, result in pairs
            ]
            return [*messages, *calls, *outputs]
        if self.api == "messages":
            blocks = [
                {"type": "tool_result", "tool_use_id": call, "content": result}
                for call, result in pairs
            ]
            said = {"role": "assistant", "content": [each.model_dump() for each in answer]}
            return [*messages, said, {"role": "user", "content": blocks}]
        outputs = [
            {"role": "tool", "tool_call_id": call, "content": result} for call, result in pairs
        ]
        return [*messages, answer.model_dump(exclude_none=True), *outputs]


@pytest.fixture(params=APIS)
def program(request: Any, live: Live, user: User, model: AiModel) -> Any:
    yield Program(request.param, live, user)
    turn_runner.drain()
    for session in Session.objects.all():
        assert not verification.check_session(session.pk)


def user_says(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def list_sent_texts(request: Any) -> list[str]:
    return [str(message["content"]) for message in request.json["messages"]]


def test_three_subagents_at_once_neither_see_nor_touch_what_waits_for_them(
    program: Program, scripted: ScriptedModel
) -> None:
    together = threading.Barrier(len(AGENTS), timeout=30)

    def answer_task(body: dict[str, Any]) -> Reply:
        together.wait()
        return Reply(text=body["messages"][-1]["content"].replace("Task", "Result"))

    calls = [make_tool_call("weather", {"city": call}, id=call) for call in CALLS]
    scripted.script(Reply(tool_calls=calls))
    asked = program.ask(user_says(QUESTION), NAMED)
    scripted.default = answer_task
    with ThreadPoolExecutor(len(AGENTS)) as pool:
        answers = list(
            pool.map(
                lambda agent: program.ask(user_says(f"Task of {agent}"), name_agent(agent)), AGENTS
            )
        )
    results = [program.read_text(answer) for answer in answers]
    assert results == [f"Result of {agent}" for agent in AGENTS]
    for request in list_completions(scripted)[1:]:
        assert QUESTION not in str(request.json["messages"])
    assert Turn.objects.filter(status=Turn.Status.WAITING).count() == 1
    scripted.default = Reply(text="Sunny everywhere.")
    answer = program.ask(program.add_results(user_says(QUESTION), asked, results), NAMED)
    assert program.read_text(answer) == "Sunny everywhere."
    parent = Session.objects.get(external_id="trip")
    assert parent.turns.get().status == Turn.Status.COMPLETED
    assert set(parent.subagents.values_list("external_id", flat=True)) == {
        f"trip/{agent}" for agent in AGENTS
    }


def test_a_subagent_goes_on_in_its_own_thread(program: Program, scripted: ScriptedModel) -> None:
    program.ask(user_says(QUESTION), NAMED)
    scripted.script(Reply(text="First."), Reply(text="Second."))
    program.ask(user_says("Task"), name_agent("a1"))
    answer = program.ask(user_says("And then?"), name_agent("a1"))
    assert program.read_text(answer) == "Second."
    assert list_sent_texts(list_completions(scripted)[-1]) == ["Task", "First.", "And then?"]
    assert Session.objects.count() == 2


def test_a_subagent_of_a_subagent_stands_below_it(program: Program) -> None:
    program.ask(user_says(QUESTION), NAMED)
    program.ask(user_says("Task"), name_agent("a1"))
    headers = name_agent("a2") | {"x-claude-code-parent-agent-id": "a1"}
    program.ask(user_says("Part of it"), headers)
    session = Session.objects.get(external_id="trip/a2")
    assert session.parent
    assert session.parent.external_id == "trip/a1"


def test_a_thread_of_codex_stands_below_the_session_of_its_parent(program: Program) -> None:
    root = {"session-id": "r", "thread-id": "r", **NAMED}
    program.ask(user_says(QUESTION), root)
    child = root | {"thread-id": "t1", "x-codex-parent-thread-id": "r"}
    program.ask(user_says("Task"), child)
    program.ask(
        user_says("Part of it"),
        child | {"thread-id": "t2", "x-codex-parent-thread-id": "t1"},
    )
    parents = Session.objects.values_list("external_id", "parent__external_id")
    assert dict(parents) == {"trip": None, "trip/t1": "trip", "trip/t2": "trip/t1"}


def test_a_program_may_name_each_thread_and_its_parent(program: Program) -> None:
    program.ask(user_says(QUESTION), NAMED)
    program.ask(user_says("Task"), {"X-Session-Id": "sub", "X-Parent-Session-Id": "trip"})
    session = Session.objects.get(external_id="sub")
    assert session.parent
    assert session.parent.external_id == "trip"


def test_a_long_name_leaves_room_for_that_of_a_subagent(program: Program) -> None:
    program.ask(user_says("Task"), name_agent("a1") | {"X-Session-Id": "n" * 255})
    name = Session.objects.get().external_id
    assert name
    assert len(name) == 64


@pytest.fixture
def subagent(user: User, model: AiModel) -> Session:
    parent = Session.objects.create(owner=user, model=model, title="Trip", external_id="trip")
    return Session.objects.create(
        owner=user, model=model, title="Part", external_id="trip/a1", parent=parent
    )


def test_lists_show_subagents_below_their_parent_only(api: APIClient, subagent: Session) -> None:
    def list_ids(query: str = "") -> list[str]:
        page = api.get(f"/api/v1/sessions{query}").json()
        return [session["id"] for session in page["results"]]

    assert list_ids() == [str(subagent.parent_id)]
    assert list_ids(f"?parent={subagent.parent_id}") == [str(subagent.pk)]
    assert list_ids("?external_id=trip/a1") == [str(subagent.pk)]
    detail = api.get(f"/api/v1/sessions/{subagent.pk}").json()
    assert detail["parent"] == str(subagent.parent_id)
    assert api.get("/api/v1/sessions?parent=x").status_code == 400


def test_the_page_of_a_conversation_names_its_subagents(client: Any, subagent: Session) -> None:
    client.force_login(subagent.owner)
    page = client.get(f"/c/{subagent.parent_id}/").content.decode()
    assert page.count(f"/c/{subagent.pk}/") == 1  # not in the list of chats
    page = client.get(f"/c/{subagent.pk}/").content.decode()
    assert "Subagent of" in page


def test_subagents_are_deleted_with_their_parent(subagent: Session) -> None:
    assert subagent.parent_id
    delete_session(subagent.parent_id)
    assert not Session.all_objects.exists()

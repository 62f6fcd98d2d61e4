"""Programs that compact a conversation over `/v1/responses` by themselves."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from openai import OpenAI
from rest_framework.test import APIClient

from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session
from models_registry.models import AiModel
from tests.support.open_responses import MODEL
from tests.support.openai_client import client, list_completions
from tests.support.recorded_programs import load_recording, send_recording
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)
SUMMARY = "What another model has found out. " + "The code word is heliotrope. " * 20
LOOK: Any = {"type": "function", "name": "look", "parameters": {"type": "object"}}


@pytest.fixture(autouse=True)
def answer_each(scripted: ScriptedModel, model: AiModel) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=65_536)
    scripted.default = lambda body: Reply(text=f"Answer to {body['messages'][-1]['content']}")


@pytest.fixture
def rest(user: User) -> APIClient:
    api_client = APIClient()
    api_client.force_authenticate(user)
    return api_client


def says(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def ask(client: OpenAI, *items: Any) -> list[Any]:
    """Send a whole history under one name; return it with its answer."""
    response = client.responses.create(
        model=MODEL, input=list(items), tools=[LOOK], extra_headers={"X-Session-Id": "trip"}
    )
    turn_runner.drain()
    return [*items, *(item.model_dump(exclude_none=True) for item in response.output)]


def talk(client: OpenAI, count: int = 4) -> list[Any]:
    history: list[Any] = []
    for number in range(count):
        history = ask(client, *history, says(f"Question {number}"))
    return history


def load_texts() -> list[str]:
    session = Session.objects.get()
    assert not Message.objects.exclude(branch=None).exists()
    return list(session.messages.order_by("seq").values_list("content", flat=True))


def load_runs(rest: APIClient) -> list[dict[str, Any]]:
    path = f"/api/v1/sessions/{Session.objects.get().pk}/compactions"
    runs: list[dict[str, Any]] = rest.get(path).json()["results"]
    return runs


def get_last_request(scripted: ScriptedModel) -> str:
    return str(list_completions(scripted)[-1].json["messages"])


def test_a_summary_before_the_newest_exchange(
    client: OpenAI, scripted: ScriptedModel, rest: APIClient
) -> None:
    stored = talk(client)
    texts = load_texts()
    shorter = ask(client, says(SUMMARY), *stored[-2:], says("And now?"))
    assert load_texts() == [*texts, "And now?", "Answer to And now?"]
    [run] = load_runs(rest)
    assert (run["trigger"], run["status"]) == ("by_client", "applied")
    assert (run["messages_compacted"], run["summary_after"]) == (6, SUMMARY)
    assert "Question 2" not in get_last_request(scripted)
    ask(client, *shorter, says("And then?"))
    assert load_texts()[-2:] == ["And then?", "Answer to And then?"]
    assert len(load_texts()) == 12
    assert len(load_runs(rest)) == 1


def test_codex_keeps_what_the_user_said_before_its_summary(
    client: OpenAI, scripted: ScriptedModel, rest: APIClient
) -> None:
    recording = load_recording("codex-0.171.0-after-compaction")
    items = recording["body"]["input"]
    leading, questions, later = items[:1], items[1:4], items[4:]
    setting, question_4, summary, question_5 = later[1:]
    history = [*leading, setting]

    def send(*new_items: Any) -> None:
        history.extend(new_items)
        response = send_recording(client, recording, model=MODEL, input=history, stream=False)
        assert response.status_code == 200, response.text
        turn_runner.drain()
        history.extend(response.json()["output"])

    for question in (*questions, question_4):
        send(question)
    texts = load_texts()
    history = [*leading, *questions, *later[:-1]]
    send(question_5)
    assert load_texts() == [*texts, "Question 5", "Answer to Question 5"]
    sent = get_last_request(scripted)
    assert "The code word is heliotrope. Question 1" in sent
    assert summary["content"][0]["text"][-40:] in sent
    assert "Answer to Question 4" not in sent
    send(question_5 | {"content": "Question 6"})
    assert load_texts() == [
        *texts,
        "Question 5",
        "Answer to Question 5",
        "Question 6",
        "Answer to Question 6",
    ]
    [run] = load_runs(rest)
    assert run["messages_compacted"] == len(texts)
    path = f"/api/v1/sessions/{Session.objects.get().pk}/context/undo"
    assert rest.post(path).status_code == 200
    send(question_5 | {"content": "Question 7"})
    assert load_texts()[-1] == "Answer to Question 7"
    assert len(load_texts()) == len(texts) + 6
    assert "Answer to Question 4" in get_last_request(scripted)


def test_a_summary_inside_a_task_is_answered(
    client: OpenAI, scripted: ScriptedModel, rest: APIClient
) -> None:
    history: list[Any] = [says("Look at it all.")]
    for number in range(3):
        scripted.script(Reply(tool_calls=[make_tool_call("look", id=f"call_{number}")]))
        history = ask(client, *history)
        output = {"type": "function_call_output", "call_id": f"call_{number}", "output": "A gull."}
        history.append(output)
    # The program summarizes before it sends the newest result.
    stored_count = len(load_texts())
    scripted.script(Reply(tool_calls=[make_tool_call("look", id="call_again")]))
    shorter = ask(client, says("Look at it all."), says(SUMMARY))
    assert "heliotrope" in get_last_request(scripted)
    assert "call_0" not in get_last_request(scripted)
    output = {"type": "function_call_output", "call_id": "call_again", "output": "A tern."}
    scripted.script(Reply(text="All is seen."))
    ask(client, *shorter, output)
    assert load_texts()[-2:] == ["A tern.", "All is seen."]
    assert len(load_texts()) >= stored_count + 4
    assert len(load_runs(rest)) == 1


def test_a_long_question_is_no_summary(client: OpenAI, rest: APIClient) -> None:
    talk(client, 2)
    ask(client, says(SUMMARY))
    ask(client, says("Question 0"), says("Question 1"), says(SUMMARY))
    assert load_runs(rest) == []


def test_an_edit_is_no_summary(client: OpenAI, rest: APIClient) -> None:
    history = talk(client)
    ask(client, *history[:4], says("Another question"))
    session = Session.objects.get()
    current_texts = session.messages.exclude_superseded().order_by("seq")
    assert list(current_texts.values_list("content", flat=True))[4:] == [
        "Another question",
        "Answer to Another question",
    ]
    assert load_runs(rest) == []

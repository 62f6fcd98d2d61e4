"""An answer from a trimmed request says so, over every API and for as long as it exists."""

import json
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.contrib.sent_requests.models import SentRequest
from chatcore.models import Session, SessionEvent
from chatcore.turns import control
from compaction.models import SessionState
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.browsing import PausedChunks
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    list_event_data,
    summarize_or_chat,
)
from tests.support.openai_client import MODEL, create_key
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply, count_usage
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = {"content": "And what about the flight?"}


@pytest.fixture(params=["oneclaw", "chatcore"])
def trimmed(request: pytest.FixtureRequest, session: Session, scripted: ScriptedModel) -> Session:
    """A session over its window whose automatic summaries are stopped, so requests are trimmed."""
    scripted.default = summarize_or_chat()
    Session.objects.filter(pk=session.pk).update(policy=request.param)
    SessionState.objects.create(session_id=session.pk, fruitless=2)
    fill_session(session, messages=20)
    return session


def ask(api: APIClient, session: Session) -> dict[str, Any]:
    response = api.post(f"/api/v1/sessions/{session.pk}/messages", QUESTION)
    assert response.status_code == 201, response.content
    answer: dict[str, Any] = response.json()
    return answer


def list_trimmed(api: APIClient, session: Session) -> list[int]:
    """Return the ids of the messages that say so."""
    rows = api.get(f"/api/v1/sessions/{session.pk}/messages?limit=100").json()["results"]
    return [row["id"] for row in rows if row["context_trimmed"]]


def read_context(api: APIClient, session: Session) -> dict[str, Any]:
    context: dict[str, Any] = api.get(f"/api/v1/sessions/{session.pk}/context").json()
    return context


def test_each_answer_from_a_trimmed_request_says_so(api: APIClient, trimmed: Session) -> None:
    answers = [ask(api, trimmed), ask(api, trimmed)]
    assert [answer["context_trimmed"] for answer in answers] == [True, True]
    assert [bool(answer["notices"]) for answer in answers] == [True, False]
    assert list_trimmed(api, trimmed) == [answer["assistant_message"]["id"] for answer in answers]


def test_it_stays_true_after_a_summary_and_without_the_record_of_the_request(
    api: APIClient, trimmed: Session
) -> None:
    early_answer = ask(api, trimmed)
    path = f"/api/v1/sessions/{trimmed.pk}"
    run = api.post(f"{path}/compact", {"wait": True}).json()
    assert run["status"] == "applied"
    assert ask(api, trimmed)["context_trimmed"] is False
    SentRequest.objects.all().delete()
    trimmed_ids = list_trimmed(api, trimmed)
    assert trimmed_ids == [early_answer["assistant_message"]["id"]]
    fork = api.post(f"/api/v1/messages/{trimmed_ids[0]}/fork").json()
    assert len(list_trimmed(api, Session.objects.get(pk=fork["id"]))) == 1


def test_the_events_of_the_turn_say_so(api: APIClient, trimmed: Session) -> None:
    answer = ask(api, trimmed)["assistant_message"]["id"]
    left_out = api.get(f"/api/v1/messages/{answer}/request").json()["left_out"]
    created = {data["message"]: data for data in list_event_data(trimmed, "message.created")}
    completed = {data["message"]: data for data in list_event_data(trimmed, "message.completed")}
    (end,) = list_event_data(trimmed, "turn.completed")
    assert created[answer]["left_out"] == len(left_out) > 0
    assert (completed[answer]["context_trimmed"], end["context_trimmed"]) == (True, True)
    assert not any("left_out" in data for number, data in created.items() if number != answer)


def test_the_end_of_a_turn_whose_events_are_gone_says_so(
    live: Live, user: User, api: APIClient, trimmed: Session
) -> None:
    path = f"/api/v1/sessions/{trimmed.pk}/messages"
    assert api.post(path, QUESTION, headers={"Idempotency-Key": "one"}).status_code == 201
    SessionEvent.objects.all().delete()
    headers = {"Authorization": f"Bearer {create_key(user)}", "Idempotency-Key": "one"}
    body = QUESTION | {"stream": True}
    answer = httpx2.post(f"{live.url}{path}", json=body, headers=headers, timeout=60)
    assert "event: turn.completed" in answer.text
    assert '"context_trimmed":true' in answer.text


def test_an_answer_that_is_stopped_says_so(
    api: APIClient, trimmed: Session, scripted: ScriptedModel
) -> None:
    words = PausedChunks("I would ", "look.")
    scripted.default = Reply(chunks=words)
    turn = control.start_turn(trimmed, content="And the flight?")
    try:
        wait_until(lambda: list_trimmed(api, trimmed), what="the first words")
        api.post(f"/api/v1/sessions/{trimmed.pk}/cancel")
    finally:
        words.resume.set()
    assert control.wait_for_turn(turn.pk, 30).status == "cancelled"
    answer = trimmed.messages.get(turn=turn, role="assistant")
    assert (answer.status, list_trimmed(api, trimmed)) == ("interrupted", [answer.pk])


@pytest.mark.parametrize("usage", [None, False])
def test_the_context_says_how_many_tokens_were_sent(
    api: APIClient, trimmed: Session, scripted: ScriptedModel, usage: Any
) -> None:
    assert read_context(api, trimmed)["sent_input_tokens"] is None
    scripted.default = Reply(text="From Porto.", usage=usage)
    ask(api, trimmed)
    context = read_context(api, trimmed)
    counted_tokens = count_usage(Reply(), list_chat_calls(scripted)[-1].json)[0]
    assert context["estimated_input_tokens"] > context["available_input_tokens"]
    if usage is None:
        assert context["sent_input_tokens"] == counted_tokens
    assert 0.8 * counted_tokens < context["sent_input_tokens"] < 1.3 * counted_tokens


def test_a_request_that_fits_is_not_trimmed(api: APIClient, session: Session) -> None:
    fill_session(session, messages=4)
    answer = ask(api, session)
    assert (answer["context_trimmed"], list_trimmed(api, session)) == (False, [])
    context = read_context(api, session)
    assert context["sent_input_tokens"] == answer["assistant_message"]["token_count_input"]


def test_a_request_that_a_refusal_made_shorter_is_trimmed(
    api: APIClient, session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=None)
    fill_session(session, messages=20)
    scripted.default = summarize_or_chat(summary=Reply(status=500))
    scripted.script(make_overflow(tokens=10_000, window=8192))
    assert ask(api, session)["context_trimmed"] is True


def test_an_export_keeps_it(api: APIClient, trimmed: Session) -> None:
    ask(api, trimmed)
    document = api.get(f"/api/v1/sessions/{trimmed.pk}/export").json()
    imported = api.post("/api/v1/sessions/import", document)
    assert imported.status_code == 201, imported.content
    copy = Session.objects.get(pk=imported.json()["id"])
    assert len(list_trimmed(api, copy)) == 1


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "And the flight?"}]}),
        (
            "/v1/messages",
            {"messages": [{"role": "user", "content": "And the flight?"}], "max_tokens": 99},
        ),
        ("/v1/responses", {"input": "And the flight?"}),
    ],
)
def test_the_compatible_apis_say_so(
    live: Live,
    user: User,
    trimmed: Session,
    path: str,
    body: dict[str, Any],
    is_stream: bool,
) -> None:
    headers = {
        "Authorization": f"Bearer {create_key(user)}",
        "X-Session-Id": str(trimmed.pk),
        "X-Session-On-Divergence": "append",
    }
    answer = httpx2.post(
        f"{live.url}{path}",
        json={"model": MODEL, "stream": is_stream, **body},
        headers=headers,
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    if path == "/v1/responses":
        assert '"context_trimmed":"true"' in answer.text.replace(" ", "")
    if path != "/v1/responses" or not is_stream:
        assert answer.headers["X-Context-Trimmed"] == "true"


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_stream_of_a_response_that_is_not_stored_says_so(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel, is_refused: bool
) -> None:
    if is_refused:
        AiModel.objects.filter(pk=model.pk).update(context_window_size=None)
        scripted.script(make_overflow(tokens=10_000, window=8192))
    said = [{"role": ("user", "assistant")[n % 2], "content": "lisbon " * 900} for n in range(20)]
    answer = httpx2.post(
        f"{live.url}/v1/responses",
        json={
            "model": MODEL,
            "stream": True,
            "store": False,
            "input": [*said, {"role": "user", "content": "And the flight?"}],
        },
        headers={"Authorization": f"Bearer {create_key(user)}"},
        timeout=60,
    )
    *_, last_event, end_mark = (
        line.removeprefix("data: ")
        for line in answer.text.splitlines()
        if line.startswith("data: ")
    )
    assert end_mark == "[DONE]"
    assert json.loads(last_event)["response"]["metadata"] == {"context_trimmed": "true"}

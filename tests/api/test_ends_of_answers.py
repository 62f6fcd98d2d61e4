"""Why an answer ended is stored with it and told by every API, with a memory and without."""

import json
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from models_registry.models import AiModel, Provider
from tests.conftest import Live
from tests.support.openai_client import MODEL, create_key
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = [{"role": "user", "content": "Hello?"}]
# The provider's word, and what each API says: completions, Messages, Responses.
ENDS = {
    "stop": ("stop", "end_turn", ("completed", None)),
    "length": ("length", "max_tokens", ("incomplete", {"reason": "max_output_tokens"})),
    "model_length": ("length", "max_tokens", ("incomplete", {"reason": "max_output_tokens"})),
    "model_context_window_exceeded": (
        "length",
        "model_context_window_exceeded",
        ("incomplete", {"reason": "max_output_tokens"}),
    ),
    "content_filter": ("content_filter", "refusal", ("incomplete", {"reason": "content_filter"})),
    "sensitive": ("content_filter", "refusal", ("incomplete", {"reason": "content_filter"})),
    "qwertz": ("length", "max_tokens", ("incomplete", {"reason": "max_output_tokens"})),
}
STORED = {
    "stop": ("stop", ""),
    "length": ("length", "length"),
    "model_length": ("length", "model_length"),
    "model_context_window_exceeded": ("length", "model_context_window_exceeded"),
    "content_filter": ("refusal", "content_filter"),
    "sensitive": ("refusal", "sensitive"),
    "qwertz": ("unknown", "qwertz"),
}


def post(url: str, key: str, body: dict[str, Any], *, session: str | None) -> list[dict[str, Any]]:
    """Return the answer, or the data of each event of it."""
    headers = {"Authorization": f"Bearer {key}"}
    if session:
        headers["X-Session-Id"] = session
    response = httpx2.post(url, json=body, headers=headers, timeout=60)
    assert response.status_code == 200, response.text
    if not body["stream"]:
        return [response.json()]
    lines = response.text.splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


@pytest.mark.parametrize("word", mark_others_slow(ENDS, first=3))
@pytest.mark.parametrize("stream", [False, True])
def test_every_api_tells_the_end(
    word: str, stream: bool, live: Live, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(text="Half an ans", finish=word)
    key = create_key(user)
    finish, stop_reason, response_end = ENDS[word]
    for session in (None, "kept"):
        completion = {"model": MODEL, "messages": QUESTION, "stream": stream}
        chunks = post(f"{live.url}/v1/chat/completions", key, completion, session=session)
        assert chunks[-1]["choices"][0]["finish_reason"] == finish, session

        message = {"model": MODEL, "max_tokens": 50, "messages": QUESTION, "stream": stream}
        name = session and f"{session}-messages"
        events = post(f"{live.url}/v1/messages", key, message, session=name)
        told = (
            next(event["delta"] for event in events if event.get("type") == "message_delta")
            if stream
            else events[0]
        )
        assert told["stop_reason"] == stop_reason, session

        request = {"model": MODEL, "input": "Hello?", "store": bool(session), "stream": stream}
        events = post(f"{live.url}/v1/responses", key, request, session=None)
        response = events[-1]["response"] if stream else events[0]
        assert (response["status"], response["incomplete_details"]) == response_end, session
        assert response["output"][-1]["status"] == response_end[0]
    answers = Message.objects.filter(role="assistant")
    assert set(answers.values_list("finish_reason", "finish_detail")) == {STORED[word]}


@pytest.mark.parametrize("session", [None, "kept"])
@pytest.mark.parametrize("stream", [False, True])
def test_the_stop_sequence_is_kept(
    session: str | None,
    stream: bool,
    live: Live,
    user: User,
    model: AiModel,
    scripted: ScriptedModel,
) -> None:
    Provider.objects.update(protocol="anthropic", base_url=scripted.anthropic_base_url)
    message = {
        "type": "message",
        "content": [{"type": "text", "text": "One, two"}],
        "stop_reason": "stop_sequence",
        "stop_sequence": "three",
    }
    scripted.script(Reply(body=json.dumps(message).encode()))
    body = {
        "model": MODEL,
        "max_tokens": 50,
        "messages": QUESTION,
        "stream": stream,
        "stop_sequences": ["three"],
    }
    events = post(f"{live.url}/v1/messages", create_key(user), body, session=session)
    told = (
        next(event["delta"] for event in events if event.get("type") == "message_delta")
        if stream
        else events[0]
    )
    assert (told["stop_reason"], told["stop_sequence"]) == ("stop_sequence", "three")


def test_rest_tells_the_end(api: APIClient, session: Session, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Half an ans", finish="length"))
    path = f"/api/v1/sessions/{session.pk}/messages/"
    assert api.post(path, {"content": "Hi"}, format="json").status_code < 300
    wait_until(lambda: len(api.get(path).json()["results"]) == 2)
    wait_until(lambda: api.get(path).json()["results"][1]["status"] == "complete")
    answer = api.get(path).json()["results"][1]
    assert (answer["finish_reason"], answer["finish_detail"]) == ("length", "length")

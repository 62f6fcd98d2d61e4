"""`POST /v1/responses` by the official client: an answer, as a whole and as a stream."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from openai import OpenAI

from chatcore.models import Session
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.open_responses import MODEL, check_response, check_stream, read_events
from tests.support.openai_client import client, list_completions
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_text_is_answered(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Hello there.", usage=(11, 3)))
    response = client.responses.create(model=MODEL, input="Hi", instructions="Be brief.")
    assert response.output_text == "Hello there."
    assert response.usage
    assert (response.usage.input_tokens, response.usage.output_tokens) == (11, 3)
    assert response.status == "completed"
    assert [
        (message["role"], message["content"])
        for message in list_completions(scripted)[-1].json["messages"]
    ] == [("system", "Be brief."), ("user", "Hi")]


def test_every_field_is_as_the_standard_has_it(client: OpenAI) -> None:
    raw = client.responses.with_raw_response.create(
        model=MODEL,
        input=[{"type": "message", "role": "user", "content": "Hi"}],
        metadata={"topic": "greeting"},
        temperature=0.5,
        max_output_tokens=100,
    )
    resource: Any = raw.http_response.json()
    check_response(resource)
    assert resource["metadata"] == {"topic": "greeting"}
    assert (resource["temperature"], resource["max_output_tokens"]) == (0.5, 100)
    assert raw.headers["X-Session-Id"] == str(Session.objects.get().pk)


def test_a_stream_tells_the_answer_in_semantic_events(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["One, ", "two, ", "three."], reasoning="Count them."))
    events = read_events(client, input="Count.")
    check_stream(events)
    types = [event["type"] for event in events]
    assert types[:2] == ["response.created", "response.in_progress"]
    assert types[-1] == "response.completed"
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == "One, two, three."
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Count them."


def test_the_official_stream_helper_collects_the_answer(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Streamed."))
    with client.responses.stream(model=MODEL, input="Hi") as stream:
        assert stream.get_final_response().output_text == "Streamed."


def test_the_session_is_seen_over_rest(
    client: OpenAI, api: Any, user: User, model: AiModel, live: Live
) -> None:
    response = client.responses.create(model=MODEL, input="Hi")
    session = Session.objects.get(owner=user)
    messages = api.get(f"/api/v1/sessions/{session.pk}/messages").json()["results"]
    assert {message["role"]: message["content"] for message in messages} == {
        "user": "Hi",
        "assistant": response.output_text,
    }


def test_without_storing_nothing_stays(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Gone."), Reply(text="Gone, too.", reasoning="Hm."))
    raw = client.responses.with_raw_response.create(model=MODEL, input="Hi", store=False)
    check_response(raw.http_response.json())
    check_stream(read_events(client, input="Hi", store=False))
    assert not Session.objects.exists()

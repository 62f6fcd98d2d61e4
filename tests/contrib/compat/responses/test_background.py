"""Responses in the background: polled, followed again from a number on, stopped, deleted."""

import threading
from typing import Any

import openai
import pytest
from openai import OpenAI

from chatcore.base.runner import turn_runner
from chatcore.models import Session, SessionEvent, Turn
from tests.support.open_responses import (
    MODEL,
    check_response,
    check_stream,
    parse_events,
    read_events,
)
from tests.support.openai_client import client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)


def follow(client: OpenAI, response_id: str, **query: Any) -> list[dict[str, Any]]:
    """Return the events of a stored response."""
    raw = client.get(
        f"/responses/{response_id}",
        cast_to=str,
        options={"params": {"stream": "true", **query}},
    )
    return parse_events(raw)


def test_a_background_response_is_polled_to_its_end(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    go_on = threading.Event()

    def answer(_: dict[str, Any]) -> Reply:
        go_on.wait(60)
        return Reply(text="Done.")

    scripted.script(answer)
    response = client.responses.create(model=MODEL, input="Hi", background=True)
    check_response(response.model_dump(mode="json", exclude_unset=True))
    assert (response.status, response.output, response.background) == ("in_progress", [], True)
    go_on.set()
    turn_runner.drain()
    assert client.responses.retrieve(response.id).output_text == "Done."


def test_a_stream_goes_on_after_a_number(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(chunks=["One, ", "two, ", "three."]))
    events = read_events(client, input="Count.", background=True)
    check_stream(events)
    assert events[1]["type"] == "response.queued"
    response_id = events[-1]["response"]["id"]
    assert follow(client, response_id) == events
    for number in (0, 4, len(events) - 2):
        assert follow(client, response_id, starting_after=number) == events[number + 1 :]


def test_a_stream_ends_also_when_the_log_is_pruned(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Still here."))
    response = client.responses.create(model=MODEL, input="Hi")
    SessionEvent.objects.all().delete()
    events = follow(client, response.id)
    check_stream(events)
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Still here."
    [event] = follow(client, response.id, starting_after=99)
    assert event["type"] == "response.completed"


def test_followers_are_bounded_as_other_streams_are(client: OpenAI, settings: Any) -> None:
    response = client.responses.create(model=MODEL, input="Hi")
    settings.CHATCORE = {**settings.CHATCORE, "STREAMS_AT_ONCE_PER_USER": 0}
    with pytest.raises(openai.RateLimitError):
        follow(client, response.id)


def test_a_background_response_is_cancelled(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Half of it", cut_after=1, hang=True))
    response = client.responses.create(model=MODEL, input="Hi", background=True)
    assert client.responses.cancel(response.id).status == "cancelled"
    assert client.responses.cancel(response.id).status == "cancelled"
    assert Turn.objects.get().status == Turn.Status.CANCELLED


def test_only_background_responses_are_cancelled(client: OpenAI) -> None:
    response = client.responses.create(model=MODEL, input="Hi")
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(response.id)


def test_a_client_that_leaves_stops_the_answer_and_goes_on(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(text="a1"),
        Reply(text="Half of it, and more", cut_after=2, hang=True),
        Reply(text="a3"),
    )
    first = client.responses.create(model=MODEL, input="q1")
    with client.responses.create(
        model=MODEL, input="q2", previous_response_id=first.id, stream=True
    ) as stream:
        for event in stream:
            if event.type == "response.created":
                stopped_id = event.response.id
            if event.type == "response.output_text.delta":
                break
    third = client.responses.create(model=MODEL, input="q3", previous_response_id=stopped_id)
    assert third.output_text == "a3"
    stopped: Any = client.responses.retrieve(stopped_id)
    assert (stopped.status, stopped.output[0].status) == ("cancelled", "incomplete")
    assert Session.objects.count() == 1


def test_a_client_that_waits_no_longer_stops_the_answer(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(hang=True))
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.5).responses.create(model=MODEL, input="q1")
    turn_runner.drain()
    assert Turn.objects.get().status == Turn.Status.CANCELLED


def test_a_failure_is_an_error_and_a_failed_response(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(status=401, text="wrong key"), Reply(status=401, text="wrong key"))
    with pytest.raises(openai.APIStatusError):
        client.responses.create(model=MODEL, input="Hi")
    events = read_events(client, input="Hi")
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    check_stream(events)
    check_response(events[-1]["response"])


def test_the_input_is_listed(client: OpenAI) -> None:
    items: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "q1"}]},
    ]
    first = client.responses.create(model=MODEL, input=items)
    second = client.responses.create(model=MODEL, input="q2", previous_response_id=first.id)
    listed: Any = client.responses.input_items.list(first.id, order="asc").data
    assert [(item.role, item.content[0].text) for item in listed] == [
        ("system", "Be brief."),
        ("user", "q1"),
    ]
    newest: Any = client.responses.input_items.list(second.id)
    assert [item.content[0].text for item in newest] == ["q2"]


def test_a_deleted_response_is_forgotten(client: OpenAI) -> None:
    first = client.responses.create(model=MODEL, input="q1")
    second = client.responses.create(model=MODEL, input="q2", previous_response_id=first.id)
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    assert client.responses.retrieve(second.id).output_text
    assert Session.objects.count() == 1


def test_the_only_response_takes_its_session_with_it(client: OpenAI) -> None:
    client.responses.delete(client.responses.create(model=MODEL, input="q1").id)
    assert not Session.objects.exists()


def test_tokens_of_an_input_are_counted(client: OpenAI) -> None:
    first = client.responses.create(model=MODEL, input="word " * 400)
    count = client.responses.input_tokens.count(model=MODEL, input="word " * 400)
    assert 300 <= count.input_tokens <= 700
    more = client.responses.input_tokens.count(
        model=MODEL, input="Hi", previous_response_id=first.id
    )
    assert more.input_tokens > count.input_tokens
    assert Session.objects.count() == 1

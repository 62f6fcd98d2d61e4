"""A client that was away for longer than events are kept is told so, and misses nothing unseen."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.db.models import F

from chatcore.events import retention
from chatcore.models import Session, SessionEvent, Turn
from tests.conftest import Live
from tests.support.event_streams import follow_events, iterate_events, open_api_client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(live: Live, user: User) -> Iterator[httpx2.Client]:
    with open_api_client(live.url, user) as client:
        yield client


@pytest.fixture
def address(session: Session) -> str:
    return f"/sessions/{session.pk}"


def let_days_pass(days: int) -> None:
    Turn.objects.update(finished_at=F("finished_at") - timedelta(days=days))
    SessionEvent.objects.update(at=F("at") - timedelta(days=days))
    retention.prune_events()


def say(client: httpx2.Client, address: str, content: str, **headers: str) -> dict[str, Any]:
    response = client.post(f"{address}/messages", json={"content": content}, headers=headers)
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


def test_a_stream_from_before_what_is_kept_begins_with_a_word_about_it(
    client: httpx2.Client, address: str, session: Session, scripted: ScriptedModel
) -> None:
    say(client, address, "Long ago")
    let_days_pass(2)
    turn = say(client, address, "Not so long ago")["turn"]
    let_days_pass(2)
    events = follow_events(client, address, headers={"Last-Event-ID": "1"})
    first_kept = session.events.order_by("seq").first()
    assert first_kept
    assert events[0]["event"] == "events.dropped"
    assert events[0]["session"] == str(session.pk)
    assert int(events[0]["id"]) == events[0]["until"] == first_kept.seq - 1
    assert events[1]["event"] == "turn.started"
    assert {event["turn"] for event in events if "turn" in event} == {turn}


def test_a_client_that_has_seen_all_that_is_gone_is_told_nothing(
    client: httpx2.Client, address: str, session: Session, scripted: ScriptedModel
) -> None:
    say(client, address, "Long ago")
    let_days_pass(4)
    session.refresh_from_db()
    place = session.last_event_seq
    say(client, address, "Now")
    events = follow_events(client, address, headers={"Last-Event-ID": str(place)})
    assert events[0]["event"] == "turn.started"
    assert events[0]["seq"] == place + 1


def test_where_nothing_is_kept_the_next_turn_follows_the_word_about_it(
    client: httpx2.Client, address: str, session: Session, scripted: ScriptedModel
) -> None:
    say(client, address, "Long ago")
    let_days_pass(4)
    session.refresh_from_db()
    with client.stream("GET", f"{address}/events?after=0") as response:
        events = iterate_events(response)
        dropped = next(events)
        assert (dropped["event"], dropped["until"]) == ("events.dropped", session.last_event_seq)
        say(client, address, "Now")
        assert next(events)["event"] == "turn.started"


def test_a_key_that_is_repeated_after_days_still_streams_the_end_of_its_turn(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    key = {"Idempotency-Key": "once"}
    first = say(client, address, "Long ago", **key)
    let_days_pass(4)
    with client.stream(
        "POST",
        f"{address}/messages",
        json={"content": "Long ago"},
        headers={**key, "Accept": "text/event-stream"},
    ) as response:
        (event,) = iterate_events(response)
    assert event["event"] == "turn.completed"
    assert event["turn"] == first["turn"]
    assert event["message"] == first["assistant_message"]["id"]
    assert len(scripted.requests) == 1


def test_a_failed_turn_is_repeated_with_its_reason(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(status=401, body=b"{}"))
    key = {"Idempotency-Key": "once"}
    body = {"content": "Long ago"}
    assert client.post(f"{address}/messages", json=body, headers=key).status_code == 502
    let_days_pass(4)
    streaming = {**key, "Accept": "text/event-stream"}
    with client.stream("POST", f"{address}/messages", json=body, headers=streaming) as response:
        (event,) = iterate_events(response)
    assert (event["event"], event["type"]) == ("turn.failed", "provider_auth")

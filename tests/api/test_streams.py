"""Streams over REST, from a real server: live, resumed, abandoned, cancelled."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User

from chatcore.models import Message, Session, Turn
from tests.conftest import Live
from tests.support.event_streams import follow_events, iterate_events, open_api_client
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
SLOW = Reply(chunks=["One. ", "Two. ", "Three. ", "Four. ", "Five. ", "Six."], chunk_delay=0.25)


@pytest.fixture
def client(live: Live, user: User) -> Iterator[httpx2.Client]:
    with open_api_client(live.url, user) as client:
        yield client


@pytest.fixture
def address(session: Session) -> str:
    return f"/sessions/{session.pk}"


def join_text(events: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in events if event["event"] == "message.delta")


@pytest.mark.parametrize(
    "options",
    [{"json": {"content": "Hi", "stream": True}}, {"headers": {"Accept": "text/event-stream"}}],
)
def test_a_turn_is_streamed_as_it_is_spoken(
    client: httpx2.Client, address: str, scripted: ScriptedModel, options: dict[str, Any]
) -> None:
    scripted.script(SLOW)
    with client.stream(
        "POST", f"{address}/messages", **{"json": {"content": "Hi"}, **options}
    ) as response:
        assert response.status_code == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        assert (response.headers["Cache-Control"], response.headers["X-Accel-Buffering"]) == (
            "no-cache",
            "no",
        )
        at, events = [], []
        for event in iterate_events(response):
            at.append(time.monotonic())
            events.append(event)
    assert [event["event"] for event in events[:2]] == ["turn.started", "message.created"]
    assert events[-1]["event"] == "turn.completed"
    assert join_text(events) == "One. Two. Three. Four. Five. Six."
    assert at[-1] - at[0] > 0.8
    assert all(
        event["id"] == str(event["seq"]) and event["session"] in address and event["at"]
        for event in events
    )


def test_a_resumed_stream_has_nothing_missing_and_nothing_doubled(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    scripted.script(SLOW)
    with client.stream(
        "POST", f"{address}/messages", json={"content": "Hi", "stream": True}
    ) as response:
        first = list(islice(iterate_events(response), 4))
    by_header = follow_events(client, address, headers={"Last-Event-ID": first[-1]["id"]})
    by_query = follow_events(client, address, params={"after": first[-1]["id"]})
    assert by_header == by_query
    seqs = [event["seq"] for event in first + by_header]
    assert seqs == list(range(1, len(seqs) + 1))
    assert join_text(first + by_header) == "One. Two. Three. Four. Five. Six."


def test_a_closed_socket_does_not_stop_the_answer(
    client: httpx2.Client, address: str, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(SLOW)
    with client.stream(
        "POST", f"{address}/messages", json={"content": "Hi", "stream": True}
    ) as response:
        next(iterate_events(response))
    assert Message.objects.filter(role="assistant", status="complete").count() == 0
    wait_until(lambda: Message.objects.filter(role="assistant", status="complete").exists())
    assert session.messages.get(role="assistant").content == "One. Two. Three. Four. Five. Six."


def test_without_a_place_in_the_log_only_new_events_come(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    client.post(f"{address}/messages", json={"content": "Hi"})
    with client.stream("GET", f"{address}/events") as response:
        events = iterate_events(response)
        client.patch(address, json={"title": "New"})
        assert next(events)["event"] == "session.updated"
    assert follow_events(client, address, params={"after": 0})[0]["seq"] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"Last-Event-ID": "x"}},
        {"params": {"after": "-1"}},
        {"params": {"after": "9" * 30}},
    ],
)
def test_a_place_that_is_none_is_refused(
    client: httpx2.Client, address: str, options: dict[str, Any]
) -> None:
    assert client.get(f"{address}/events", **options).status_code == 400


def test_a_turn_may_be_left_to_follow(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    scripted.script(SLOW)
    start_response = client.post(
        f"{address}/messages", json={"content": "Hi"}, headers={"Prefer": "respond-async, wait=1"}
    )
    assert (start_response.status_code, start_response.headers["Preference-Applied"]) == (
        202,
        "respond-async",
    )
    assert start_response.json()["user_message"] == Message.objects.get(role="user").pk
    with client.stream("GET", start_response.json()["events"]) as response:
        events = list(islice(iterate_events(response), 3))
    assert {event.get("turn", start_response.json()["turn"]) for event in events} == {
        start_response.json()["turn"]
    }
    assert follow_events(client, address, params={"after": 0})[-1]["event"] == "turn.completed"


def test_a_stream_ends_where_the_turn_waits_and_another_takes_it_up(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=(make_tool_call("weather", {}, id="w"),)), Reply(text="It rains.")
    )
    body = {"content": "Weather?", "tools": [{"name": "weather"}], "stream": True}
    key = {"Idempotency-Key": "k1"}
    with client.stream("POST", f"{address}/messages", json=body, headers=key) as response:
        first = list(iterate_events(response))
    assert (first[-1]["event"], [call["id"] for call in first[-1]["tool_calls"]]) == (
        "turn.waiting",
        ["w"],
    )
    results = {"results": [{"tool_call_id": "w", "content": "Rain"}], "stream": True}
    with client.stream("POST", f"{address}/tool_results", json=results) as response:
        rest = list(iterate_events(response))
    assert [int(event["id"]) for event in (first[-1], rest[0])] == [
        int(rest[0]["id"]) - 1,
        int(rest[0]["id"]),
    ]
    assert (join_text(rest), rest[-1]["event"]) == ("It rains.", "turn.completed")
    with client.stream("POST", f"{address}/messages", json=body, headers=key) as response:
        assert [event["id"] for event in iterate_events(response)] == [
            event["id"] for event in first + rest
        ]


def test_a_second_turn_while_one_runs_is_409_with_its_id(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    scripted.script(SLOW)
    turn = client.post(
        f"{address}/messages", json={"content": "Hi"}, headers={"Prefer": "respond-async"}
    ).json()["turn"]
    refusal = client.post(f"{address}/messages", json={"content": "And?"})
    assert (refusal.status_code, refusal.json()["type"], refusal.json()["turn"]) == (
        409,
        "turn_running",
        turn,
    )


def test_a_cancelled_answer_is_kept_as_interrupted(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    scripted.script(SLOW)
    assert client.post(f"{address}/cancel").json() == {"cancelled": False}
    with client.stream(
        "POST", f"{address}/messages", json={"content": "Hi", "stream": True}
    ) as response:
        events = iterate_events(response)
        received_events = list(islice(events, 4))
        assert client.post(f"{address}/cancel").json() == {"cancelled": True}
        received_events += events
    assert received_events[-1]["event"] == "turn.cancelled"
    partial_message = client.get(f"{address}/messages").json()["results"][1]
    assert (partial_message["status"], partial_message["content"]) == (
        "interrupted",
        join_text(received_events),
    )


def test_an_idempotency_key_gives_the_same_turn(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="First."), Reply(text="Second."))
    key = {"Idempotency-Key": "k1"}
    first = client.post(f"{address}/messages", json={"content": "Hi"}, headers=key)
    second_answer = client.post(f"{address}/messages", json={"content": "Hi"}, headers=key)
    assert (second_answer.status_code, second_answer.json()) == (201, first.json())
    with client.stream(
        "POST", f"{address}/messages", json={"content": "Hi", "stream": True}, headers=key
    ) as response:
        assert join_text(list(iterate_events(response))) == "First."
    other = client.post(f"{address}/messages", json={"content": "Bye"}, headers=key)
    assert (other.status_code, other.json()["type"]) == (422, "idempotency_key_reused")
    assert Turn.objects.count() == 1
    assert (
        client.post(
            f"{address}/messages", json={"content": "Hi"}, headers={"Idempotency-Key": "k" * 256}
        ).status_code
        == 400
    )


def test_an_idempotency_key_in_flight_is_409(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    scripted.script(SLOW)
    headers = {"Idempotency-Key": "k1", "Prefer": "respond-async"}
    turn = client.post(f"{address}/messages", json={"content": "Hi"}, headers=headers).json()[
        "turn"
    ]
    second_answer = client.post(f"{address}/messages", json={"content": "Hi"}, headers=headers)
    assert (
        second_answer.status_code,
        second_answer.json()["turn"],
        second_answer.json()["repeated"],
    ) == (409, turn, True)
    other = client.post(
        f"{address}/messages", json={"content": "Hi"}, headers=headers | {"Idempotency-Key": "k2"}
    )
    assert (other.status_code, other.json()["turn"], other.json()["repeated"]) == (409, turn, False)


def test_a_provider_failure_ends_the_stream_with_its_type(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(status=401)
    with client.stream(
        "POST", f"{address}/messages", json={"content": "Hi", "stream": True}
    ) as response:
        last = list(iterate_events(response))[-1]
    assert (last["event"], last["type"]) == ("turn.failed", "provider_auth")


def test_the_head_of_a_stream_ends_at_once(client: httpx2.Client, address: str) -> None:
    head = client.head(f"{address}/events")
    assert (head.status_code, head.headers["Content-Type"]) == (200, "text/event-stream")
    assert client.get(address, timeout=15).status_code == 200


def test_an_answer_whose_session_is_deleted_meanwhile_is_404(
    client: httpx2.Client, address: str, scripted: ScriptedModel
) -> None:
    scripted.script(SLOW)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(client.post, f"{address}/messages", json={"content": "Hi"})
        wait_until(lambda: Message.objects.filter(role="assistant").exists())
        assert client.delete(address).status_code == 204
        assert (future.result().status_code, future.result().json()["type"]) == (404, "not_found")

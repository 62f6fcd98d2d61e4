"""Responses over a WebSocket: one connection, one response after the other."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from chatcore.models import Session, StoredResponse, Turn
from chatcore.turns.runner import turn_runner
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.mcp_server import ToolServer, running, tool_server
from tests.support.open_responses import MODEL, check_stream, find_violations
from tests.support.openai_client import create_key, list_completions
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["running", "tool_server"]

pytestmark = pytest.mark.django_db(transaction=True)
END_TYPES = {"response.completed", "response.failed", "response.incomplete"}


@contextmanager
def open_socket(live: Live, key: str) -> Iterator[ClientConnection]:
    address = f"{live.url.replace('http', 'ws')}/v1/responses"
    headers = {"Authorization": f"Bearer {key}"}
    with connect(address, additional_headers=headers, proxy=None) as socket:
        yield socket


@pytest.fixture
def socket(live: Live, user: User, model: AiModel) -> Iterator[ClientConnection]:
    with open_socket(live, create_key(user)) as socket:
        yield socket


def create(socket: ClientConnection, **body: Any) -> list[dict[str, Any]]:
    """Send a request and return all events up to the last one."""
    socket.send(json.dumps({"type": "response.create", "model": MODEL, **body}))
    events = []
    while True:
        events.append(json.loads(socket.recv(timeout=10)))
        if events[-1]["type"] in END_TYPES or "status" in events[-1]:
            return events


def fail(socket: ClientConnection, **body: Any) -> dict[str, Any]:
    """Send a request that is refused, and return the error."""
    [event] = create(socket, **body)
    assert find_violations("WebSocketErrorEvent", event) == []
    return event["error"] | {"status": event["status"]}


def test_responses_follow_each_other(socket: ClientConnection, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="first"), Reply(text="second"))
    first = create(socket, input="q1")
    check_stream(first)
    second = create(socket, input="q2", previous_response_id=first[-1]["response"]["id"])
    check_stream(second)
    assert second[-1]["response"]["output"][0]["content"][0]["text"] == "second"
    assert Session.objects.get().message_count == 4


def test_what_is_not_stored_is_remembered_by_the_connection(
    socket: ClientConnection, live: Live, user: User, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="OK."), Reply(text="cobalt"))
    first = create(socket, input="Remember: cobalt.", store=False)[-1]["response"]
    second = create(socket, input="Which?", store=False, previous_response_id=first["id"])
    assert second[-1]["response"]["previous_response_id"] == first["id"]
    sent = [message["content"] for message in list_completions(scripted)[-1].json["messages"]]
    assert sent == ["Remember: cobalt.", "OK.", "Which?"]
    assert not StoredResponse.objects.exists()
    with open_socket(live, create_key(user)) as other_socket:
        error = fail(other_socket, input="Which?", store=False, previous_response_id=first["id"])
    assert (error["code"], error["status"]) == ("previous_response_not_found", 404)


def test_a_continuation_that_fails_takes_its_memory_with_it(socket: ClientConnection) -> None:
    first = create(socket, input="Remember: ember.", store=False)[-1]["response"]
    output = {"type": "function_call_output", "call_id": "call_unknown", "output": "?"}
    place = {"store": False, "previous_response_id": first["id"]}
    assert "call_unknown" in fail(socket, input=[output], **place)["message"]
    assert fail(socket, input="Again.", **place)["code"] == "previous_response_not_found"


@pytest.mark.parametrize(
    "message", ["no JSON", "[]", '{"type": "other"}', '{"type": "response.create", "input": 1}']
)
def test_a_bad_message_is_an_error_and_the_connection_goes_on(
    socket: ClientConnection, message: str
) -> None:
    socket.send(message)
    event = json.loads(socket.recv(timeout=10))
    assert find_violations("WebSocketErrorEvent", event) == []
    assert event["status"] == 400
    check_stream(create(socket, input="Hi"))


def test_a_client_that_leaves_stops_its_answer(
    socket: ClientConnection, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Half of it, and more", cut_after=2, hang=True))
    socket.send(json.dumps({"type": "response.create", "model": MODEL, "input": "Hi"}))
    while json.loads(socket.recv(timeout=10))["type"] != "response.output_text.delta":
        pass
    socket.close()
    turn_runner.drain()
    assert Turn.objects.get().status == Turn.Status.CANCELLED


@pytest.mark.usefixtures("model")
def test_a_stranger_is_refused_at_the_door(live: Live) -> None:
    with pytest.raises(InvalidStatus) as caught, open_socket(live, "nobody's key"):
        pass
    assert caught.value.response.status_code == 401


def test_an_mcp_server_of_a_request_is_asked_and_called(
    socket: ClientConnection, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    call = make_tool_call("mcp__my_files__read", {"path": "a.txt"}, id="call_read")
    scripted.script(Reply(tool_calls=[call]), Reply(text="It says hello."))
    tool = {"type": "mcp", "server_label": "my_files", "server_url": tool_server.url}
    asked = create(socket, input="Read it.", tools=[tool])[-1]["response"]
    assert [item["type"] for item in asked["output"]][-1] == "mcp_approval_request"
    assert tool_server.calls == []
    word = {
        "type": "mcp_approval_response",
        "approval_request_id": asked["output"][-1]["id"],
        "approve": True,
    }
    answered = create(socket, input=[word], previous_response_id=asked["id"], tools=[tool])
    output = answered[-1]["response"]["output"]
    assert [item["type"] for item in output][-2:] == ["mcp_call", "message"]
    assert tool_server.calls == [("read", "a.txt")]

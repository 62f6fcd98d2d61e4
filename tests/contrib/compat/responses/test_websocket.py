"""Responses over a WebSocket: one connection, one response after the other."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from chatcore.base.runner import turn_runner
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.responses import creation, websocket
from chatcore.models import Session, Turn
from chatcore.turns import capacity
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.mcp_server import ToolServer, running, tool_server
from tests.support.open_responses import MODEL, check_stream, find_violations
from tests.support.openai_client import create_key, list_completions
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.waiting import PATIENCE_SECONDS, wait_until

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
        events.append(json.loads(socket.recv(timeout=PATIENCE_SECONDS)))
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


def test_characters_that_no_database_stores_are_dropped_as_over_http(
    socket: ClientConnection, scripted: ScriptedModel
) -> None:
    create(socket, input="Hi\ud83d there", instructions="Be\x00 brief\udc00.")
    [system, question] = list_completions(scripted)[-1].json["messages"]
    assert (system["content"], question["content"]) == ("Be brief.", "Hi there")
    socket.send('{"type": "response.create", "model": "' + MODEL + '", "temperature": NaN}')
    assert json.loads(socket.recv(timeout=PATIENCE_SECONDS))["error"]["code"] == "invalid_json"


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


def test_what_is_remembered_is_bounded_by_bytes(
    socket: ClientConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "MAX_REMEMBERED", 20_000)
    short = create(socket, input="Remember: ember.", store=False)[-1]["response"]
    long = create(socket, input="ember " * 1_000, store=False)[-1]["response"]
    place = {"store": False, "previous_response_id": long["id"]}
    longer = create(socket, input="ember " * 3_000, **place)[-1]["response"]
    for response in (short, longer):  # the oldest one, and one that is too large by itself
        error = fail(socket, input="Which?", store=False, previous_response_id=response["id"])
        assert error["code"] == "previous_response_not_found"


@pytest.mark.parametrize(
    "flood",
    [b"\x00\x80" + bytes(4), b"\x89\x80" + bytes(4), b"\x8a\x80" + bytes(4)],
    ids=["parts of nothing", "pings", "pongs"],
)
def test_a_flood_of_small_frames_ends_the_connection(
    socket: ClientConnection, flood: bytes
) -> None:
    begin_of_text = b"\x01\x80" + bytes(4)
    socket.socket.sendall(begin_of_text + flood * 1_500)
    assert find_close_code(socket) == 1008


@pytest.mark.parametrize(
    "message", ["no JSON", "[]", '{"type": "other"}', '{"type": "response.create", "input": 1}']
)
def test_a_bad_message_is_an_error_and_the_connection_goes_on(
    socket: ClientConnection, message: str
) -> None:
    socket.send(message)
    event = json.loads(socket.recv(timeout=PATIENCE_SECONDS))
    assert find_violations("WebSocketErrorEvent", event) == []
    assert event["status"] == 400
    check_stream(create(socket, input="Hi"))


def test_a_client_that_leaves_stops_its_answer(
    socket: ClientConnection, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Half of it, and more", cut_after=2, hang=True))
    socket.send(json.dumps({"type": "response.create", "model": MODEL, "input": "Hi"}))
    while json.loads(socket.recv(timeout=PATIENCE_SECONDS))["type"] != "response.output_text.delta":
        pass
    socket.close()
    turn_runner.drain()
    assert Turn.objects.get().status == Turn.Status.CANCELLED


class Held:
    """A function of a module that begins its work only once it may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        self._function = getattr(module, name)
        self.is_called, self.may_go, self.has_ended = (threading.Event() for _ in range(3))
        monkeypatch.setattr(module, name, self)

    def __call__(self, *values: Any) -> Any:
        self.is_called.set()
        self.may_go.wait(PATIENCE_SECONDS)
        result = self._function(*values)
        self.has_ended.set()
        return result


def leave_while_held(socket: ClientConnection, held: Held, **body: Any) -> None:
    """Send a request, leave while it begins, and let it go on when the server has noticed."""
    socket.send(json.dumps({"type": "response.create", "model": MODEL, "input": "Hi", **body}))
    assert held.is_called.wait(PATIENCE_SECONDS)
    socket.close()
    time.sleep(0.2)  # the server cancels what it does for a client that has left
    held.may_go.set()
    assert held.has_ended.wait(PATIENCE_SECONDS)


def test_a_client_that_leaves_before_its_answer_began_stops_it(
    socket: ClientConnection, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.script(Reply(text="Half of it, and more", cut_after=2, hang=True))
    leave_while_held(socket, Held(monkeypatch, creation, "begin_stored"))
    wait_until(Turn.objects.filter(status=Turn.Status.CANCELLED).exists)
    turn_runner.drain()


@pytest.mark.usefixtures("scripted")
def test_a_client_that_leaves_before_its_answer_began_keeps_no_place(
    socket: ClientConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch, capacity, "take_slot")
    leave_while_held(socket, held, store=False)
    wait_until(lambda: capacity.count_answers() + websocket._slots.count() == 0)


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


def send_slow(socket: ClientConnection, scripted: ScriptedModel) -> None:
    """Have a response written that does not end."""
    scripted.script(Reply(text="never", hang=True))
    socket.send(
        json.dumps({"type": "response.create", "model": MODEL, "input": "q", "store": False})
    )
    wait_until(lambda: list_completions(scripted))


def find_close_code(socket: ClientConnection, *messages: str) -> int:
    """Send messages, and return the code with which the server closes the connection."""
    try:
        for message in messages:
            socket.send(message)
        while True:
            socket.recv(timeout=20)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else 1006


@pytest.mark.parametrize("letter", ["x", "\N{GRINNING FACE}"], ids=["plain", "wide"])
def test_what_waits_on_a_connection_is_bounded_by_bytes(
    socket: ClientConnection, scripted: ScriptedModel, letter: str
) -> None:
    send_slow(socket, scripted)
    message = "x" * 150_000 + letter  # with the wide letter Python keeps four bytes of each
    assert find_close_code(socket, *[message] * 20) == 1009


def test_many_short_messages_wait_and_are_answered_in_their_order(
    socket: ClientConnection, scripted: ScriptedModel
) -> None:
    body = {"type": "response.create", "model": MODEL, "store": False}
    for number in range(30):
        socket.send(json.dumps(body | {"input": f"q{number}"}))
    ends = 0
    while ends < 30:
        ends += json.loads(socket.recv(timeout=20))["type"] == "response.completed"
    asked = [call.json["messages"][-1]["content"] for call in list_completions(scripted)]
    assert asked == [f"q{number}" for number in range(30)]


def test_a_large_message_alone_is_taken_one_of_too_many_values_is_not(
    socket: ClientConnection, scripted: ScriptedModel
) -> None:
    text = ", ".join(["a word"] * 300_000)  # its commas are no values
    assert "values" not in fail(socket, input=text)["message"], "it is longer than the window"
    refused = fail(socket, input=[{}] * 600_000)
    assert (refused["status"], "500,000 values" in refused["message"]) == (413, True)


def test_nothing_is_compressed_and_a_message_has_an_end(socket: ClientConnection) -> None:
    assert socket.response is not None
    assert "Sec-WebSocket-Extensions" not in socket.response.headers
    # The rest of the message may meet a closed socket before the reason is read.
    assert find_close_code(socket, "x" * (8 * 1024 * 1024 + 1)) in (1009, 1006)

"""Tools that the client runs itself: called, waited for, answered, and the turn goes on."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import pytest
from django.conf import settings
from django.db import connections
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.models import Session, SessionEvent, Turn
from chatcore.turns import control, lifecycle
from tests.support.client_tool_requests import (
    SCHEMA,
    WEATHER,
    address,
    ask,
    asking,
    bring,
    names_of,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.soundness import sound

__all__ = ["address", "sound"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_model_is_told_of_the_clients_tools_beside_the_built_in_ones(
    api: APIClient, address: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Fine."))
    api.post(f"{address}/messages", {"content": "Hi", "tools": [WEATHER, {"name": "now"}]})
    told = {
        tool["function"]["name"]: tool["function"] for tool in scripted.requests[-1].json["tools"]
    }
    assert {"calculate", "weather", "now"} <= set(told)
    assert (told["weather"]["description"], told["weather"]["parameters"]) == (
        "The weather now.",
        SCHEMA,
    )
    assert told["now"]["parameters"] == {"type": "object", "properties": {}}


def test_a_call_of_one_makes_the_turn_wait_and_its_result_makes_it_go_on(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    waiting = ask(api, address, scripted)
    assert (waiting.status_code, waiting.json()["status"]) == (201, "waiting")
    asked = {"id": "r", "name": "weather", "arguments": '{"city": "Rome"}'}
    assert (
        waiting.json()["requires_action"]
        == waiting.json()["assistant_message"]["tool_calls"]
        == [asked]
    )
    scripted.script(Reply(text="It rains."))
    done = bring(api, address, ("r", "Rain, 12 °C")).json()
    assert (done["status"], done["turn"], done["requires_action"]) == (
        "completed",
        waiting.json()["turn"],
        [],
    )
    assert (done["user_message"]["content"], done["assistant_message"]["content"]) == (
        "Weather?",
        "It rains.",
    )
    assert [message["content"] for message in done["tool_messages"]] == ["Rain, 12 °C"]
    sent = [
        message for message in scripted.requests[-1].json["messages"] if message["role"] != "system"
    ]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[2]["tool_call_id"] == sent[1]["tool_calls"][0]["id"]


def test_its_story_is_told_in_order(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted)
    assert names_of(session)[-2:] == ["tool_call.started", "turn.waiting"]
    waiting = SessionEvent.objects.get(name="turn.waiting").data
    assert waiting["tool_calls"] == [
        {"id": "r", "name": "weather", "arguments": '{"city": "Rome"}'}
    ]
    before = len(names_of(session))
    bring(api, address, ("r", "Rain"))
    told = [
        name
        for name in names_of(session)[before:]
        if name.startswith(("turn.", "message.", "tool_call."))
    ]
    words = [
        name for name, following in pairwise([*told, ""]) if name != following
    ]  # an answer comes in one piece or in many
    assert words == [
        "message.created",
        "tool_call.completed",
        "message.created",
        "message.delta",
        "message.completed",
        "turn.completed",
    ]


def test_built_in_tools_of_the_same_round_are_run_at_once(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    waiting = ask(
        api,
        address,
        scripted,
        make_tool_call("calculate", {"expression": "6*7"}, id="c"),
        asking("Rome", id="r"),
    ).json()
    assert [message["tool_name"] for message in waiting["tool_messages"]] == ["calculate"]
    assert [asked["id"] for asked in waiting["requires_action"]] == ["r"]
    assert bring(api, address, ("c", "43")).status_code == 400


def test_the_turn_waits_until_all_results_are_in(
    api: APIClient, address: str, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted, asking("Rome", id="r"), asking("Oslo", id="o"))
    part = bring(api, address, ("o", "Snow")).json()
    assert (part["status"], [asked["id"] for asked in part["requires_action"]]) == (
        "waiting",
        ["r"],
    )
    assert len(scripted.requests) == 1
    assert bring(api, address, ("r", "Rain")).json()["status"] == "completed"
    assert [
        message["content"]
        for message in scripted.requests[-1].json["messages"]
        if message["role"] == "tool"
    ] == ["Rain", "Snow"]  # in the order of the calls


def test_an_error_is_a_result_too(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted)
    api.post(
        f"{address}/tool_results",
        {"results": [{"tool_call_id": "r", "content": "No such city", "is_error": True}]},
    )
    assert session.messages.get(role="tool").is_error


def test_a_long_result_is_cut_as_every_other(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted)
    bring(api, address, ("r", "x" * 400_000))
    assert session.messages.get(role="tool").original_chars == 400_000


def test_a_result_given_twice_is_stored_once(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted, asking("Rome", id="r"), asking("Oslo", id="o"))
    bring(api, address, ("o", "Snow"))
    assert bring(api, address, ("o", "Snow")).json()["status"] == "waiting"
    done = bring(api, address, ("o", "Snow"), ("r", "Rain"), ("r", "Rain"))
    assert done.json()["status"] == "completed"
    assert session.messages.filter(role="tool").count() == 2
    assert bring(api, address, ("o", "Snow"), ("r", "Rain")).json() == done.json()
    assert len(scripted.requests) == 2


def test_a_tool_may_have_the_name_of_a_built_in_one_that_is_not_offered(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.update(tools=[])
    scripted.script(Reply(tool_calls=(make_tool_call("calculate", {"expression": "1"}, id="c"),)))
    waiting = api.post(
        f"{address}/messages", {"content": "Hi", "tools": [{"name": "calculate"}]}
    ).json()
    assert [asked["name"] for asked in waiting["requires_action"]] == ["calculate"]


def test_a_waiting_turn_needs_no_process(
    api: APIClient, address: str, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted)
    Turn.objects.update(lease_until=timezone.now() - timedelta(days=1))
    assert lifecycle.recover_dead_turns() == 0
    assert bring(api, address, ("r", "Rain")).json()["status"] == "completed"


def test_a_waiting_turn_can_be_cancelled_and_the_model_learns_of_it(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted, asking("Rome", id="r"), asking("Oslo", id="o"))
    bring(api, address, ("o", "Snow"))
    assert api.post(f"{address}/cancel").json() == {"cancelled": True}
    assert names_of(session)[-1] == "turn.cancelled"
    assert bring(api, address, ("r", "Rain")).status_code == 409
    api.post(f"{address}/messages", {"content": "Never mind."})
    rome, oslo = [
        message["content"]
        for message in scripted.requests[-1].json["messages"]
        if message["role"] == "tool"
    ]
    assert "interrupted" in rome
    assert oslo == "Snow"


def test_rounds_of_the_clients_own_tools_are_not_bounded(
    api: APIClient,
    address: str,
    session: Session,
    scripted: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(settings.CHATCORE, "TOOL_ROUNDS", 1)
    scripted.default = lambda _: Reply(tool_calls=(asking("Rome", id="r"),))
    api.post(f"{address}/messages", {"content": "Weather?", "tools": [WEATHER]})
    for _ in range(4):
        assert bring(api, address, ("r", "Rain")).json()["status"] == "waiting"
    assert len(scripted.requests) == 5


def test_an_answer_given_anew_is_offered_the_same_tools(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted)
    bring(api, address, ("r", "Rain"))
    answer = session.messages.order_by("seq").last()
    assert answer
    scripted.script(Reply(tool_calls=(asking("Rome", id="r2"),)), Reply(text="Sun, after all."))
    waiting = api.post(f"/api/v1/messages/{answer.pk}/regenerate", {}).json()
    assert (waiting["status"], waiting["user_message"]["content"]) == ("waiting", "Weather?")
    done = bring(api, address, ("r2", "Sun")).json()
    assert (done["assistant_message"]["content"], done["assistant_message"]["replaces"]) == (
        "Sun, after all.",
        answer.pk,
    )


def test_results_can_be_followed_like_a_message(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted)
    taken = bring(api, address, ("r", "Rain"), Prefer="respond-async")
    assert taken.status_code == 202
    after = int(taken.json()["events"].partition("after=")[2])
    control.wait_for_turn(taken.json()["turn"], 10)
    told = SessionEvent.objects.filter(session=session, seq__gt=after).order_by("seq")
    assert [told[0].name, told[1].name] == ["message.created", "tool_call.completed"]


def test_of_two_who_bring_the_same_results_one_makes_the_turn_go_on(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted)
    scripted.default = Reply(text="It rains.", delay=0.2)

    def give(_: int) -> int:
        try:
            return int(bring(api, address, ("r", "Rain")).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(give, range(4))) == [201] * 4
    assert session.messages.filter(role="tool").count() == 1
    assert len(scripted.requests) == 2

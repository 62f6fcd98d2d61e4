"""An agent that calls its client's tools for long in one turn is compacted as after a response."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session, Turn
from compaction.models import CompactionRun
from tests.support.client_tool_requests import WEATHER, address, asking, bring
from tests.support.compaction_sessions import (
    LARGE_USAGE,
    fill_session,
    list_chat_calls,
    list_event_data,
    list_summary_calls,
    run_queued_compactions,
    summarize_or_chat,
)
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

__all__ = ["address"]

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "Which of the forty cities has the best weather for a wedding in May?"
SUMMARY = "The weather of the cities so far is sunny and warm; the user asks for a wedding in May."


def call_weather(number: int, **fields: Any) -> Reply:
    return Reply(tool_calls=[asking(f"City {number}", id=f"call_{number}")], **fields)


def ask(api: APIClient, address: str, scripted: ScriptedModel, reply: Reply) -> Any:
    scripted.script(reply)
    return api.post(f"{address}/messages", {"content": QUESTION, "tools": [WEATHER]}).json()


def test_a_long_loop_in_one_turn_is_compacted_at_its_threshold(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(text=SUMMARY))
    answer = ask(api, address, scripted, call_weather(0))
    for number in range(40):
        assert answer["status"] == "waiting", answer
        run_queued_compactions()
        last = number == 39
        scripted.script(Reply(text="City 7.") if last else call_weather(number + 1))
        result = f"Weather of city {number}: " + "sunny and warm, " * 190  # 770 tokens
        answer = bring(api, address, (f"call_{number}", result)).json()
    assert answer["status"] == "completed"
    assert list_event_data(session, "context.trimmed") == []

    runs = CompactionRun.objects.order_by("created_at")
    assert {run.status for run in runs} == {"applied"}
    assert {run.trigger for run in runs} == {"after_response"}  # none in a request
    assert len(runs) > 3
    requests = list_chat_calls(scripted)
    assert len(requests) == 41
    for request in requests:
        messages = request.json["messages"]
        assert any(QUESTION in str(message["content"]) for message in messages)
        calls = [call["id"] for message in messages for call in message.get("tool_calls") or []]
        results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        assert calls == results


def test_a_waiting_turn_over_the_threshold_requests_one_run(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat()
    fill_session(session)
    assert ask(api, address, scripted, call_weather(0, usage=LARGE_USAGE))["status"] == "waiting"
    [run] = CompactionRun.objects.all()
    assert (run.trigger, run.status) == ("after_response", "queued")
    [usage] = list_event_data(session, "context.usage")
    assert usage["should_compact"]
    run_queued_compactions()
    run.refresh_from_db()
    assert run.status == "applied"
    assert len(list_summary_calls(scripted)) == 1
    assert bring(api, address, ("call_0", "Sunny")).json()["status"] == "completed"
    roles = [message["role"] for message in list_chat_calls(scripted)[-1].json["messages"]]
    assert roles[-3:] == ["user", "assistant", "tool"]


def test_a_waiting_turn_below_the_threshold_announces_nothing(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    assert ask(api, address, scripted, call_weather(0))["status"] == "waiting"
    assert not CompactionRun.objects.exists()
    assert list_event_data(session, "context.usage") == []


def test_a_failed_turn_over_the_threshold_requests_one_run(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    answer = ask(api, address, scripted, Reply(status=401, text="The key is wrong."))
    assert Turn.objects.get().status == "failed", answer
    [run] = CompactionRun.objects.all()
    assert (run.trigger, run.status) == ("after_response", "queued")


def test_a_cancelled_turn_over_the_threshold_requests_one_run(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    answer = ask(api, address, scripted, call_weather(0))
    assert answer["status"] == "waiting"
    CompactionRun.objects.all().delete()
    assert api.post(f"{address}/cancel").json() == {"cancelled": True}
    wait_until(CompactionRun.objects.exists, what="a run")


def test_none_is_requested_where_automatic_compaction_is_off(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.update(auto_compact=False)
    fill_session(session)
    ask(api, address, scripted, make_overflow())
    assert Turn.objects.get().status == "failed"
    assert not CompactionRun.objects.exists()

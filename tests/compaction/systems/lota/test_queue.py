"""Lota compacts in a queued job after the turn, one per conversation, and new turns wait for it."""

import json
import threading
import time
from typing import Any

import pytest
from django.db import connection

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.systems.lota.models import WorkingState
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    list_event_names,
    list_summary_calls,
    read_message_texts,
    read_stored_messages,
    read_system_text,
    say,
    summarize_or_chat,
)
from tests.support.context_usage import load_usage
from tests.support.preset_sessions import (
    PROTOCOLS,
    create_policy,
    is_within_budget,
    list_runs,
    set_policy,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

HEADING = "Compacted context summary:"
SUMMARY_TEXT = (
    "KEY FACTS:\n- The budget is 2,000 euros.\nCONVERSATION FLOW:\n- They talked about Lisbon.\n"
    "OPEN THREADS:\n- The flight is not booked."
)
DELTA = {"decisions": {"add": ["They fly from Porto."]}, "tasks": {"add": ["Book the flight."]}}
SUMMARY = Reply(text=f"{SUMMARY_TEXT}\n\n```json\n{json.dumps(DELTA)}\n```")
WINDOW = {"context_window_size": 200_000}  # threshold 140,000 tokens of 3 characters


@pytest.fixture(params=mark_others_slow(PROTOCOLS))
def stream(request: Any, session: Session, scripted: ScriptedModel) -> Session:
    """A workstream of 14 messages of 28,000 characters: 130,700 tokens."""
    scripted.default = summarize_or_chat(summary=SUMMARY)
    set_policy(session, "lota", scripted, request.param, **WINDOW)
    fill_session(session, messages=14, tokens=7_000)
    return session


def exceed_threshold(session: Session) -> CompactionRun:
    """Add two messages, and return the run that the end of the next turn requested."""
    fill_session(session, messages=2, tokens=7_000)
    assert say(session, "What is open?").status == "completed"
    return CompactionRun.objects.latest("created_at")


def test_under_seventy_percent_nothing_is_asked_for(stream: Session) -> None:
    say(stream, "What is open?")
    assert list_runs() == []


def test_over_it_one_job_is_queued_at_the_end_of_the_turn(
    stream: Session, scripted: ScriptedModel
) -> None:
    run = exceed_threshold(stream)
    assert (run.trigger, run.status) == ("after_response", "queued")
    assert not list_summary_calls(scripted)
    assert (
        engine.request_run(stream.pk, trigger="after_response").pk == run.pk
    )  # compact:{domain}:{entityId}
    flow = run.policy_snapshot["flow"]
    assert (flow["workers"], flow["lease_seconds"], flow["attempts"], flow["while_compacting"]) == (
        2,
        300,
        2,
        "wait",
    )


def test_a_new_turn_waits_for_the_job_and_then_begins_with_the_summary(
    stream: Session, scripted: ScriptedModel
) -> None:
    run = exceed_threshold(stream)
    before, call_began = read_stored_messages(stream), threading.Event()

    def answer_first_call(_: dict[str, Any]) -> Reply:
        call_began.set()
        return Reply(text=SUMMARY.text, delay=0.5)

    scripted.script(answer_first_call)

    def execute() -> None:
        engine.execute_run(run.pk, obey_limits=True)
        connection.close()

    worker = threading.Thread(target=execute)
    worker.start()
    assert call_began.wait(60)
    assert load_usage(stream.pk)["compacting"] is True
    assert say(stream, "And the flight?").status == "completed"
    worker.join()
    request = list_chat_calls(scripted)[-1]
    assert HEADING in read_system_text(request)
    assert SUMMARY_TEXT in read_system_text(request)
    assert "They fly from Porto." in read_system_text(request)
    assert [text[:4] for text in read_message_texts(request)] == [
        "0013",
        "0014",
        "0015",
        "0016",
        "What",
        "I wo",
        "And ",
    ]
    assert read_stored_messages(stream)[: len(before)] == before
    assert is_within_budget(stream)
    assert load_usage(stream.pk)["compacting"] is False


def test_the_summary_stands_apart_from_the_system_prompt(
    stream: Session, scripted: ScriptedModel
) -> None:
    engine.execute_run(exceed_threshold(stream).pk)
    say(stream, "And the flight?")
    text = read_system_text(list_chat_calls(scripted)[-1]).strip()
    assert text.startswith(f"{stream.system_prompt}\n\n{HEADING}")


def test_long_transcripts_are_told_in_chunks_each_building_on_the_summary_before(
    stream: Session, scripted: ScriptedModel
) -> None:
    engine.execute_run(exceed_threshold(stream).pk)
    prompts = [read_message_texts(request)[-1] for request in list_summary_calls(scripted)]
    assert len(prompts) == 3  # 12 messages of 28,000 characters, 120,000 a call
    assert all(len(text) < 130_000 for text in prompts)
    assert "KEY FACTS" not in prompts[0].split("</transcript>")[0]
    assert all(SUMMARY_TEXT in text for text in prompts[1:])


def test_decisions_and_tasks_are_kept_as_state_beside_the_summary(stream: Session) -> None:
    run = exceed_threshold(stream)
    engine.execute_run(run.pk)
    run.refresh_from_db()
    state = WorkingState.objects.get().state
    assert state["decisions"][0] == "They fly from Porto."
    assert run.state_after["state"] == state
    engine.rewind_run(run)
    assert WorkingState.objects.get().state == {}


def test_after_it_ended_another_short_turn_asks_for_nothing(
    stream: Session, scripted: ScriptedModel
) -> None:
    engine.execute_run(exceed_threshold(stream).pk)
    call_count = len(list_summary_calls(scripted))
    for _ in range(3):
        say(stream, "Thanks.")
    assert list_runs() == [("after_response", "applied")]
    assert len(list_summary_calls(scripted)) == call_count
    assert list_event_names(stream, "compaction") == ["compaction.started", "compaction.applied"]


def test_a_failed_call_is_tried_once_more_after_a_wait(
    stream: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=stream.pk).update(
        policy=create_policy("lota", summary={"backoff": [0.5]})
    )
    run, began = exceed_threshold(stream), time.monotonic()
    scripted.script(Reply(status=500))
    finished_run = engine.execute_run(run.pk)
    assert finished_run is not None
    assert (finished_run.status, finished_run.provider_calls) == ("applied", 4)
    assert time.monotonic() - began >= 0.5


def test_a_job_that_fails_leaves_the_workstream_usable_and_is_tried_again_later(
    stream: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=stream.pk).update(
        policy=create_policy("lota", summary={"backoff": []})
    )
    scripted.default = summarize_or_chat(summary=Reply(status=500))
    finished_run = engine.execute_run(exceed_threshold(stream).pk)
    assert finished_run is not None
    assert (finished_run.status, finished_run.provider_calls) == ("fell_back", 2)
    assert say(stream, "And the flight?").status == "completed"
    assert load_usage(stream.pk)["automatic"] == "waiting"

"""When a policy acts: each phase alone, an overflow without a phase, and turns during a run."""

import threading
import time

import pytest
from django.db import connection, connections

from chatcore.models import Session
from chatcore.turns import control
from compaction.models import CompactionRun
from compaction.requests import guard, measured_request
from compaction.runs import engine
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    LARGE_USAGE,
    NOTICE,
    SUMMARY,
    fill_session,
    list_chat_calls,
    list_event_names,
    list_summary_calls,
    read_system_text,
    say,
    start_summary_in_thread,
    summarize_or_chat,
    use_policy,
)
from tests.support.scripted_model import ScriptedModel, make_overflow, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _summaries(scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat()


def triggers() -> list[str]:
    return list(CompactionRun.objects.order_by("created_at").values_list("trigger", flat=True))


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        (["after_response"], ["after_response"]),
        (["before_request"], ["before_request"]),
        (["on_model_change"], []),
        (["on_overflow"], []),
        (["manual"], []),
        (["before_request", "after_response"], ["before_request"]),
        ([], []),
    ],
)
def test_over_the_threshold_only_the_phases_of_the_policy_act(
    session: Session, scripted: ScriptedModel, phases: list[str], expected: list[str]
) -> None:
    fill_session(use_policy(session, trigger={"phases": phases}), messages=14)
    assert say(session).notices == []
    assert triggers() == expected


@pytest.mark.parametrize(
    ("phases", "expected"), [(["on_model_change"], ["on_model_change"]), (["manual"], [])]
)
def test_another_model_makes_room_where_the_policy_has_that_phase(
    session: Session,
    model: AiModel,
    scripted: ScriptedModel,
    phases: list[str],
    expected: list[str],
) -> None:
    large = AiModel.objects.create(
        provider=model.provider, name="large", context_window_size=200_000
    )
    Session.objects.filter(pk=session.pk).update(model=large)
    fill_session(use_policy(session, trigger={"phases": phases}), messages=14)
    say(session)
    Session.objects.filter(pk=session.pk).update(model=model)
    assert say(session).status == "completed"
    assert triggers() == expected


@pytest.mark.parametrize("phases", [["manual"], [], ["after_response"]])
def test_over_the_window_a_request_is_fitted_whatever_the_phases(
    session: Session, scripted: ScriptedModel, phases: list[str]
) -> None:
    fill_session(use_policy(session, trigger={"phases": phases}), messages=20)
    turn = say(session)
    assert (turn.status, turn.notices) == ("completed", [NOTICE])
    assert not list_summary_calls(scripted)
    assert len(str(list_chat_calls(scripted)[0].json["messages"])) // 4 < 8192


@pytest.mark.parametrize("phases", [["before_request"], ["on_overflow"]])
def test_over_the_window_it_compacts_where_the_policy_would_before_a_request_or_after_a_refusal(
    session: Session, scripted: ScriptedModel, phases: list[str]
) -> None:
    fill_session(use_policy(session, trigger={"phases": phases}), messages=20)
    assert say(session).notices == []
    assert triggers() == ["before_request"]


def test_an_overflow_without_the_phase_only_trims_the_request(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(use_policy(session, trigger={"phases": ["after_response"]}), messages=12)
    scripted.script(make_overflow(tokens=9000, window=8192))
    turn = say(session)
    assert (turn.status, turn.notices) == ("completed", [NOTICE])
    assert not list_summary_calls(scripted)
    assert len(list_chat_calls(scripted)) == 2


def test_an_overflow_comes_down_to_the_recovery_ratio(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(
        use_policy(session, overflow={"recovery_ratio": 0.4}, protect={"ratio": 0.5}), messages=12
    )
    scripted.script(make_overflow(tokens=9000, window=8192))
    assert say(session).status == "completed"
    run = CompactionRun.objects.get(trigger="on_overflow")
    assert run.tokens_after is not None
    assert run.tokens_after <= 0.4 * 8192


def test_disabled_is_disabled_on_every_path_and_an_overflow_is_a_typed_error(
    session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=session.pk).update(auto_compact=False)
    every = ["after_response", "before_request", "on_model_change", "on_overflow", "manual"]
    fill_session(use_policy(session, trigger={"phases": every}), messages=20)
    say(session)
    scripted.default = summarize_or_chat(chat=make_overflow(tokens=10_000, window=8192))
    turn = say(session)
    assert turn.error is not None
    assert (turn.error["type"], turn.notices, triggers()) == ("context_overflow", [], [])
    assert len(list_chat_calls(scripted)) == 2


# While a run is open.


def run_of_another_worker(
    session: Session, seconds: float, scripted: ScriptedModel
) -> threading.Thread:
    """It has the session's run and is writing the summary."""
    scripted.script(Reply(text=SUMMARY, delay=seconds))
    return start_summary_in_thread(engine.request_run(session.pk, trigger="manual"), scripted)


def test_a_new_turn_waits_for_an_open_run_where_the_policy_says_so(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(use_policy(session, flow={"while_compacting": "wait"}), messages=14)
    worker = run_of_another_worker(session, 1.0, scripted)
    assert say(session).status == "completed"
    worker.join()
    assert SUMMARY in read_system_text(list_chat_calls(scripted)[0])


def test_or_it_proceeds_with_what_there_is(session: Session, scripted: ScriptedModel) -> None:
    fill_session(use_policy(session, flow={"while_compacting": "proceed"}), messages=14)
    worker = run_of_another_worker(session, 2.0, scripted)
    assert say(session).status == "completed"
    assert SUMMARY not in read_system_text(list_chat_calls(scripted)[0])
    worker.join()


def test_it_waits_no_longer_than_a_lease(session: Session, scripted: ScriptedModel) -> None:
    fill_session(
        use_policy(session, flow={"while_compacting": "wait", "lease_seconds": 1}), messages=14
    )
    worker = run_of_another_worker(session, 8.0, scripted)
    assert say(session).status == "completed"
    assert CompactionRun.objects.get().status == "running"
    assert SUMMARY not in read_system_text(list_chat_calls(scripted)[0])
    scripted.stopping.set()
    worker.join()


def test_it_works_on_a_run_that_nobody_takes(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "QUEUE_PATIENCE_SECONDS", 0.1)
    fill_session(use_policy(session, flow={"while_compacting": "wait"}), messages=14)
    run = engine.request_run(session.pk, trigger="manual")
    assert say(session).status == "completed"
    run.refresh_from_db()
    assert run.status == "applied"
    assert SUMMARY in read_system_text(list_chat_calls(scripted)[0])


def test_a_canceled_turn_waits_no_longer(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, over, wait = threading.Event(), threading.Event(), guard.wait_for_open_run

    def waited(reading: measured_request.MeasuredRequest) -> bool:
        waiting.set()
        try:
            return wait(reading)
        finally:
            over.set()

    monkeypatch.setattr(guard, "wait_for_open_run", waited)
    fill_session(use_policy(session, flow={"while_compacting": "wait"}), messages=14)
    worker = run_of_another_worker(session, 60.0, scripted)
    session.refresh_from_db()
    turn = control.start_turn(session, content="And the flight?")
    assert waiting.wait(60)
    assert control.cancel_turn(session.pk)
    assert control.wait_for_turn(turn.pk, timeout=50).status == "cancelled"
    assert over.wait(50)  # the thread is free again, long before the lease would have ended
    assert CompactionRun.objects.get().status == "running"
    assert not list_chat_calls(scripted)
    scripted.stopping.set()
    worker.join()


@pytest.mark.usefixtures("give_back_at_once")
def test_whoever_waits_holds_no_connection(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_session(use_policy(session, flow={"while_compacting": "wait"}), messages=14)
    connection_states: list[bool] = []
    sleep = time.sleep

    def sleeping(seconds: float) -> None:
        if threading.current_thread().name.startswith("prepare"):
            connection_states.append(connections["default"].connection is not None)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", sleeping)
    worker = run_of_another_worker(session, 1.0, scripted)
    say(session)
    worker.join()
    assert connection_states
    assert not any(connection_states)


def test_a_round_of_tools_waits_for_nobody(session: Session, scripted: ScriptedModel) -> None:
    fill_session(use_policy(session, flow={"while_compacting": "wait"}), messages=4)

    def ask_for_a_run(_: object) -> Reply:
        engine.request_run(session.pk, trigger="manual")
        connection.close()
        return Reply(
            tool_calls=[make_tool_call("calculate", {"expression": "6*7"})], finish="tool_calls"
        )

    scripted.script(ask_for_a_run)
    assert say(session, "What is 6 times 7?").status == "completed"
    assert CompactionRun.objects.get().status == "queued"


def test_a_run_after_the_response_is_only_asked_for(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(use_policy(session, trigger={"phases": ["after_response"]}))
    scripted.script(Reply(text="Noted.", usage=LARGE_USAGE))
    say(session)
    assert CompactionRun.objects.get().status == "queued"
    assert list_event_names(session, "compaction") == []

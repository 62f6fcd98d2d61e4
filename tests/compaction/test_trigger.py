"""After a response: when a run is asked for, when not, and what it costs to find out."""

from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatcore.models import Message, Session
from chatcore.signals import response_completed
from compaction.models import CompactionPolicy, CompactionRun, SessionState
from compaction.runs import engine, receivers
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    LARGE_USAGE,
    THRESHOLD,
    fill_session,
    list_event_data,
    list_event_names,
    list_summary_calls,
    say,
    summarize_or_chat,
)
from tests.support.context_usage import load_usage
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


def runs() -> list[CompactionRun]:
    return list(CompactionRun.objects.all())


def test_it_asks_for_one_run_when_the_provider_counted_more_than_the_threshold(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=4)
    scripted.script(Reply(text="Sure.", usage=LARGE_USAGE))
    say(session)
    [run] = runs()
    assert (run.trigger, run.status, run.policy) == ("after_response", "queued", "oneclaw")
    assert run.enqueued_at is not None


@pytest.mark.parametrize(("counted", "run_count"), [(THRESHOLD, 0), (THRESHOLD + 1, 1)])
def test_equal_to_the_threshold_is_not_over(
    session: Session, scripted: ScriptedModel, counted: int, run_count: int
) -> None:
    fill_session(session, messages=4)
    scripted.script(Reply(text="Sure.", usage=(counted - 10, 10)))
    say(session)
    assert len(runs()) == run_count


def test_it_counts_by_estimates_when_the_provider_counts_nothing(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=14)
    scripted.script(Reply(text="Sure.", usage=False))
    say(session)
    assert len(runs()) == 1
    assert load_usage(session.pk)["source"] == "estimated"


def test_it_adds_estimates_of_what_came_after_the_last_count(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Sure.", usage=(1000, 10)))
    say(session)
    session.refresh_from_db()
    Message.objects.create(
        session=session, seq=session.last_seq + 1, role="user", content="x" * 400
    )
    Session.objects.filter(pk=session.pk).update(last_seq=session.last_seq + 1)
    assert load_usage(session.pk)["estimated_input_tokens"] == 1110


def test_it_never_counts_what_another_model_reported(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Sure.", usage=LARGE_USAGE))
    session.messages.create(
        seq=1,
        role="assistant",
        content="Hi",
        model="other/model",
        context_version=0,
        token_count_input=7000,
    )
    assert load_usage(session.pk)["source"] == "estimated"


def test_it_never_counts_a_request_that_was_trimmed(session: Session) -> None:
    session.messages.create(
        seq=1,
        role="assistant",
        content="Hi",
        model="scripted/test-model",
        context_version=None,
        token_count_input=7000,
    )
    assert load_usage(session.pk)["source"] == "estimated"


def test_an_unknown_window_is_never_compacted(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=None)
    fill_session(session, messages=40)
    scripted.script(Reply(text="Sure.", usage=(70_000, 10)))
    say(session)
    usage = load_usage(session.pk)
    assert not runs()
    assert (
        usage["context_window"]
        is usage["usage_ratio"]
        is usage["threshold_tokens"]
        is usage["level"]
        is None
    )
    assert usage["estimated_input_tokens"] == 70_010
    assert usage["should_compact"] is False
    assert usage["automatic"] == "off"


def test_auto_compact_off_asks_for_nothing(session: Session, scripted: ScriptedModel) -> None:
    Session.objects.filter(pk=session.pk).update(auto_compact=False)
    scripted.script(Reply(text="Sure.", usage=LARGE_USAGE))
    say(session)
    assert not runs()


def test_a_policy_without_the_phase_asks_for_nothing(
    session: Session, scripted: ScriptedModel
) -> None:
    CompactionPolicy.objects.create(name="by-hand", overrides={"trigger": {"phases": ["manual"]}})
    Session.objects.filter(pk=session.pk).update(policy="by-hand")
    scripted.script(Reply(text="Sure.", usage=LARGE_USAGE))
    say(session)
    assert not runs()


def test_every_response_tells_how_full_the_context_is(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Sure.", usage=(5600, 0)))
    say(session)
    [usage] = list_event_data(session, "context.usage")
    assert (
        usage["estimated_input_tokens"],
        usage["context_window"],
        usage["threshold_tokens"],
    ) == (
        5600,
        8192,
        6963,
    )
    assert (usage["level"], usage["source"], usage["automatic"], usage["compacting"]) == (
        "warning",
        "provider",
        "on",
        False,
    )
    assert sum(usage["breakdown"].values()) == 5600


def test_after_a_success_another_short_turn_makes_no_model_call(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat()
    fill_session(session)
    scripted.script(Reply(text="Sure.", usage=LARGE_USAGE))
    say(session)
    engine.execute_run(runs()[0].pk)
    assert runs()[0].status == "applied"
    say(session, "Thanks!")
    assert len(runs()) == 1
    assert len(list_summary_calls(scripted)) == 1


def test_a_failing_measurement_does_not_reach_the_sender(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> None:
        raise RuntimeError("the database is away")

    monkeypatch.setattr("compaction.sessions.session_context.load_session_context", broken)
    receivers.measure_and_request_run(session_id=session.pk)
    assert list_event_names(session) == []


def test_it_listens_once_however_often_it_is_connected() -> None:
    before = len(response_completed.receivers)
    apps.get_app_config("compaction").ready()
    assert len(response_completed.receivers) == before


def test_the_check_reads_no_message_and_asks_few_questions(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=1000, tokens=20)
    session.messages.create(
        seq=1001,
        role="assistant",
        content="Hi",
        model="scripted/test-model",
        context_version=0,
        token_count_input=20_000,
    )
    Session.objects.filter(pk=session.pk).update(last_seq=1001)
    with CaptureQueriesContext(connection) as queries:
        load_usage(session.pk)
    assert not [query for query in queries if '"chatcore_message"."content"' in query["sql"]]
    assert not [
        query for query in queries if "COUNT(" in query["sql"]
    ]  # would grow with a history that is never compacted
    assert len(queries) <= 6


def test_a_stopped_session_asks_for_nothing_and_says_so(
    session: Session, scripted: ScriptedModel
) -> None:
    SessionState.objects.create(session_id=session.pk, fruitless=2)
    scripted.script(Reply(text="Sure.", usage=LARGE_USAGE))
    say(session)
    assert not runs()
    assert load_usage(session.pk)["automatic"] == "stopped"
    assert list_event_names(session, "compaction") == []

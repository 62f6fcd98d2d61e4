"""Before a request: what is sent fits, and nothing else is refused."""

import pytest

from chatcore.models import Message, Session
from chatcore.turns import control
from compaction.models import CompactionPolicy, CompactionRun, SessionState
from compaction.runs import engine
from compaction.sessions import session_context
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    NOTICE,
    SUMMARY,
    fill_session,
    list_chat_calls,
    list_event_data,
    list_event_names,
    list_summary_calls,
    read_stored_messages,
    say,
    start_summary_in_thread,
    summarize_or_chat,
)
from tests.support.guarded_requests import load_sent_messages, script_summaries, triggers
from tests.support.scripted_model import ScriptedModel, make_overflow, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["script_summaries"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_request_that_fits_goes_out_unchanged(session: Session, scripted: ScriptedModel) -> None:
    fill_session(session, messages=4)
    turn = say(session)
    assert turn.notices == []
    assert (
        len([message for message in load_sent_messages(scripted) if message["role"] != "system"])
        == 5
    )
    assert not list_summary_calls(scripted)
    assert session.messages.last().context_version == 0  # type: ignore[union-attr]


def test_over_the_threshold_alone_it_waits_for_the_response(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=14)
    say(session)
    assert len(list_chat_calls(scripted)) == 1
    assert not list_summary_calls(scripted)
    assert triggers() == ["after_response"]


def test_over_the_window_it_compacts_before_sending(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=20)
    turn = say(session)
    assert (turn.status, turn.notices) == ("completed", [])
    assert triggers() == ["before_request"]
    assert SUMMARY in load_sent_messages(scripted)[0]["content"]
    assert [message["content"][:4] for message in load_sent_messages(scripted)[1:]] == [
        "0017",
        "0018",
        "0019",
        "0020",
        "And ",
    ]
    assert "context.trimmed" not in list_event_names(session)


def test_over_the_window_with_no_summary_to_be_had_it_trims(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(status=500))
    fill_session(session, messages=20)
    before = read_stored_messages(session)
    turn = say(session)
    assert (turn.status, turn.notices) == ("completed", [NOTICE])
    assert len(list_summary_calls(scripted)) == 2
    assert len(list_event_data(session, "context.trimmed")) == 1
    assert read_stored_messages(session)[:20] == before


def test_while_a_failure_makes_runs_wait_it_trims_without_asking_again(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(status=500))
    fill_session(session, messages=20)
    say(session)
    assert say(session).notices == [NOTICE]
    assert len(list_summary_calls(scripted)) == 2
    assert len(list_event_data(session, "context.trimmed")) == 1


def test_a_stopped_session_is_trimmed_and_the_user_is_told_once(
    session: Session, scripted: ScriptedModel
) -> None:
    SessionState.objects.create(session_id=session.pk, fruitless=2)
    fill_session(session, messages=20)
    assert say(session).notices == [NOTICE]
    assert say(session).notices == [NOTICE]
    assert not list_summary_calls(scripted)
    assert len(list_event_data(session, "context.trimmed")) == 1


def test_trimming_keeps_calls_with_their_results(session: Session, scripted: ScriptedModel) -> None:
    SessionState.objects.create(session_id=session.pk, fruitless=2)
    rows = [Message(session=session, seq=1, role="user", content="Look it up.")]
    for seq in range(2, 30, 2):
        called = [{"id": f"c{seq}", "name": "look_up", "arguments": "{}"}]
        rows.append(Message(session=session, seq=seq, role="assistant", tool_calls=called))
        rows.append(
            Message(
                session=session,
                seq=seq + 1,
                role="tool",
                tool_call_id=f"c{seq}",
                tool_name="look_up",
                content="x" * 2800,
            )
        )
    Message.objects.bulk_create(rows)
    Session.objects.filter(pk=session.pk).update(last_seq=29)
    assert say(session, "So?").notices == [NOTICE]
    messages = load_sent_messages(scripted)
    called_ids = [
        tool_call["id"] for message in messages for tool_call in message.get("tool_calls") or []
    ]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert called_ids == answered
    assert messages[-1]["content"] == "So?"


def test_a_switch_to_a_smaller_model_makes_room_before_sending(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    """From 200K to 8K: the history is larger than the new window, so it is summarized in parts."""
    large = AiModel.objects.create(
        provider=model.provider, name="large", context_window_size=200_000
    )
    Session.objects.filter(pk=session.pk).update(model=large)
    fill_session(session, messages=60)
    say(session, "Hello, large one.")
    Session.objects.filter(pk=session.pk).update(model=model)
    turn = say(session, "Hello, small one.")
    assert (turn.status, turn.notices) == ("completed", [])
    assert triggers() == ["on_model_change"]
    run = CompactionRun.objects.get()
    assert run.status == "applied"
    assert run.provider_calls == len(list_summary_calls(scripted)) >= 4
    assert all(len(str(request.json)) // 4 < 8192 for request in list_summary_calls(scripted))
    assert SUMMARY in load_sent_messages(scripted)[0]["content"]
    assert len(str(load_sent_messages(scripted))) // 4 < 6963


def test_a_switch_that_still_fits_makes_no_room(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    other = AiModel.objects.create(provider=model.provider, name="other", context_window_size=8192)
    fill_session(session, messages=4)
    say(session)
    Session.objects.filter(pk=session.pk).update(model=other)
    say(session)
    assert triggers() == []


def test_a_run_reckons_with_the_tools_that_the_client_runs(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=12)
    theirs = [{"name": "look_up", "description": "Looks it up. " * 1_000, "parameters": {}}]
    turn = control.wait_for_turn(
        control.start_turn(session, content="And the flight?", tools=theirs).pk, timeout=30
    )
    assert (turn.status, turn.notices) == ("completed", [])
    assert list(CompactionRun.objects.values_list("trigger", "status")) == [
        ("before_request", "applied")
    ]


def test_disabled_means_disabled_on_every_path(session: Session, scripted: ScriptedModel) -> None:
    Session.objects.filter(pk=session.pk).update(auto_compact=False)
    fill_session(session, messages=20)
    scripted.default = summarize_or_chat(chat=make_overflow(tokens=10_000, window=8192))
    turn = say(session)
    assert turn.error is not None
    assert turn.error["type"] == "context_overflow"
    assert "compact it, or switch it on" in turn.error["detail"]
    assert len(load_sent_messages(scripted)) == 21
    assert len(list_chat_calls(scripted)) == 1
    assert triggers() == []
    assert turn.notices == []


def test_an_unknown_window_is_sent_as_it_is(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=None)
    fill_session(session, messages=40)
    assert say(session).status == "completed"
    assert len(load_sent_messages(scripted)) == 41


def test_a_request_over_the_models_input_limit_is_one_over_the_window(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=40_000, max_input_tokens=8_192)
    fill_session(session, messages=20)
    assert say(session).status == "completed"
    assert triggers() == ["before_request"]
    assert len(str(load_sent_messages(scripted))) // 4 < 8_192
    turn = say(session, "x" * 40_000)
    assert turn.error is not None
    assert "model takes at most 8,192." in turn.error["detail"]


def test_a_refusal_that_names_the_input_limit_leaves_the_window(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=40_000, max_input_tokens=8_192)
    fill_session(session, messages=10)
    scripted.script(make_overflow(tokens=9_000, window=8_192))
    assert say(session).status == "completed"
    context = session_context.load_session_context(session.pk)
    assert context is not None
    budget = context.budget
    assert budget is not None
    assert (budget.window, budget.request_limit) == (40_000, 8_192)


def test_a_newest_message_larger_than_the_window_is_a_clear_error_before_any_call(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=2)
    turn = say(session, "x" * 40_000)
    assert turn.status == "failed"
    assert turn.error is not None
    assert turn.error["type"] == "context_budget_exceeded"
    assert "The newest message alone has about 10,000 tokens" in turn.error["detail"]
    assert not scripted.requests
    assert session.messages.count() == 3
    assert say(session, "Something shorter.").status == "completed"


def test_a_newest_message_near_the_window_is_sent_with_the_summary(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=12)
    assert say(session, "y" * 24_000).status == "completed"
    assert [message["role"] for message in load_sent_messages(scripted)][-1] == "user"
    assert SUMMARY in load_sent_messages(scripted)[0]["content"]


def test_a_policy_may_compact_before_every_request(
    session: Session, scripted: ScriptedModel
) -> None:
    CompactionPolicy.objects.create(
        name="eager", overrides={"trigger": {"threshold": 0.5, "phases": ["before_request"]}}
    )
    Session.objects.filter(pk=session.pk).update(policy="eager")
    fill_session(session, messages=10)
    say(session)
    assert triggers() == ["before_request"]


def test_tool_rounds_pass_the_guard_too(session: Session, scripted: ScriptedModel) -> None:
    fill_session(session, messages=4)
    scripted.script(
        Reply(tool_calls=[make_tool_call("calculate", {"expression": "6*7"})], finish="tool_calls")
    )
    turn = say(session, "What is 6 times 7?")
    assert turn.status == "completed"
    assert [message["role"] for message in load_sent_messages(scripted)][-3:] == [
        "user",
        "assistant",
        "tool",
    ]


def test_a_rewind_does_not_keep_a_request_from_fitting(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=20)
    engine.rewind_run(engine.compact_now(session.pk, trigger="manual"))
    assert say(session).notices == []
    assert triggers() == ["manual", "before_request"]


def test_a_run_that_is_waited_for_in_vain_and_then_fails_is_told_once(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "WAIT_SECONDS", 0.5)
    scripted.default = summarize_or_chat(summary=Reply(status=500, delay=1.5))
    fill_session(session, messages=20)
    run = engine.request_run(session.pk, trigger="after_response")
    worker = start_summary_in_thread(run, scripted)
    assert say(session).notices == [NOTICE]
    worker.join()
    run.refresh_from_db()
    assert run.status == "fell_back"
    names = list_event_names(session, "compaction")
    names_but_progress = [name for name in names if name != "compaction.progress"]
    assert names_but_progress == ["compaction.started", "compaction.failed"]
    assert len(list_event_data(session, "context.trimmed")) == 1


def test_room_made_between_tool_rounds_leaves_the_question_that_is_being_answered(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=11)
    round_of_tools = Reply(
        text="thinking " * 600,
        tool_calls=[make_tool_call("calculate", {"expression": "6*7"})],
        finish="tool_calls",
    )
    scripted.script(round_of_tools, round_of_tools, Reply(text=SUMMARY), Reply(text="42"))
    turn = say(session, "What is 6 times 7?")
    assert (turn.status, turn.notices, triggers()) == ("completed", [], ["before_request"])
    assert [message["role"] for message in load_sent_messages(scripted)] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert load_sent_messages(scripted)[1]["content"] == "What is 6 times 7?"

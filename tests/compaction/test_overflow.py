"""After an overflow: room is made, the request is sent once more, and its numbers are learned."""

import pytest

from chatcore.models import Session
from chatcore.turns import control
from compaction.models import SessionState
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    NOTICE,
    SUMMARY,
    fill_session,
    list_chat_calls,
    list_event_data,
    say,
    summarize_or_chat,
)
from tests.support.guarded_requests import load_sent_messages, script_summaries, triggers
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply

__all__ = ["script_summaries"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_overflow_makes_room_and_is_sent_once_more(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=12)
    scripted.script(make_overflow(tokens=9000, window=8192))
    turn = say(session)
    assert (turn.status, turn.notices) == ("completed", [])
    assert triggers()[0] == "on_overflow"
    assert len(list_chat_calls(scripted)) == 2
    assert SUMMARY in load_sent_messages(scripted)[0]["content"]


def test_what_an_overflow_teaches_reckons_with_the_tools_that_the_client_runs(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=8)
    theirs = [{"name": "look_up", "description": "Looks it up. " * 1_000, "parameters": {}}]
    scripted.script(make_overflow(tokens=9000, window=8192))
    turn = control.wait_for_turn(
        control.start_turn(session, content="And the flight?", tools=theirs).pk, timeout=30
    )
    assert turn.status == "completed"
    assert SessionState.objects.get().learned_scale < 1.3  # without them it would be 2


def test_an_overflow_teaches_the_true_window(session: Session, scripted: ScriptedModel) -> None:
    fill_session(session, messages=12)
    scripted.script(make_overflow(tokens=6100, window=4096))
    assert say(session).status == "completed"
    state = SessionState.objects.get()
    assert state.learned_window == 4096
    assert len(str(load_sent_messages(scripted))) // 4 < 4096 * 0.85


def test_a_window_that_an_operator_corrects_is_believed_again(
    session: Session, model: AiModel
) -> None:
    from tests.support.context_usage import load_usage

    SessionState.objects.create(
        session_id=session.pk, learned_for="scripted/test-model 8192", learned_window=4096
    )
    assert load_usage(session.pk)["context_window"] == 4096
    AiModel.objects.filter(pk=model.pk).update(context_window_size=16_384)
    assert load_usage(session.pk)["context_window"] == 16_384


def test_an_overflow_without_a_summary_is_trimmed_and_sent_once_more(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(status=500))
    fill_session(session, messages=12)
    scripted.script(make_overflow(tokens=9000, window=8192))
    turn = say(session)
    assert (turn.status, turn.notices) == ("completed", [NOTICE])
    assert len(load_sent_messages(scripted)) < 13


def test_a_provider_that_takes_nothing_ends_in_a_clear_error(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=12)
    refused = make_overflow(tokens=9000, window=8192)
    scripted.default = summarize_or_chat(chat=refused)
    turn = say(session)
    assert turn.status == "failed"
    assert turn.error is not None
    assert turn.error["type"] == "context_overflow"
    assert "tokens were tried." in turn.error["detail"]
    assert len(list_chat_calls(scripted)) <= 4


def test_an_overflow_with_nothing_to_remove_is_not_sent_again(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat(chat=make_overflow(tokens=9000, window=8192))
    turn = say(session, "Hello.")
    assert turn.status == "failed"
    assert len(list_chat_calls(scripted)) == 1
    assert session.messages.get().content == "Hello."


def test_throttling_is_no_overflow(session: Session, scripted: ScriptedModel) -> None:
    fill_session(session, messages=12)
    refused = Reply(status=429, text="Too many tokens, please wait.", headers={"Retry-After": "0"})
    scripted.default = summarize_or_chat(chat=refused)
    assert say(session).error["type"] == "provider_rate_limited"  # type: ignore[index]
    assert triggers() == []


def test_a_counted_answer_is_believed_more_than_the_refusal_before_it(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=12)
    scripted.script(make_overflow(tokens=9000, window=8192))
    scripted.default = summarize_or_chat(chat=Reply(text="Sure.", usage=(2500, 20)))
    say(session)
    assert SessionState.objects.get().learned_scale == 1
    assert list_event_data(session, "context.usage")[-1]["estimated_input_tokens"] == 2520

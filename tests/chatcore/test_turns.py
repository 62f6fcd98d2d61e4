"""One turn, from the user's words to the stored answer."""

import json
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from chatcore.base.runner import turn_runner
from chatcore.events import log as event_log
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.providers.base import ToolCall
from chatcore.signals import response_completed
from chatcore.turns import control, leases, lifecycle
from chatcore.turns.messages import append_message
from models_registry.models import AiModel
from tests.support.events import append_events
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def words_of(session: Session) -> list[tuple[str, str, str]]:
    return list(session.messages.order_by("seq").values_list("role", "content", "status"))


def names_of(session: Session) -> list[str]:
    return list(
        SessionEvent.objects.filter(session=session).order_by("seq").values_list("name", flat=True)
    )


def test_waiting_for_a_turn_that_does_not_end_raises_a_timeout(session: Session) -> None:
    turn = Turn.objects.create(session=session, lease_until=timezone.now())
    with pytest.raises(TimeoutError, match=f"Turn {turn.pk} is still running"):
        control.wait_for_turn(turn.pk, 0.01)


def test_it_stores_the_question_and_the_answer_with_its_usage(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Four.", usage=(20, 2)))
    turn = control.wait_for_turn(control.start_turn(session, content="Two and two?").pk, 10)
    assert turn.status == Turn.Status.COMPLETED
    assert words_of(session) == [
        ("user", "Two and two?", "complete"),
        ("assistant", "Four.", "complete"),
    ]
    answer = session.messages.get(role="assistant")
    assert (answer.token_count_input, answer.token_count_output, answer.context_version) == (
        20,
        2,
        0,
    )
    assert answer.model == "scripted/test-model"


def test_it_commits_the_question_before_the_provider_is_called(
    session: Session, scripted: ScriptedModel
) -> None:
    seen: list[int] = []

    def reply(_: object) -> Reply:
        seen.append(Message.objects.filter(session=session).count())
        return Reply(text="ok")

    scripted.default = reply
    control.wait_for_turn(control.start_turn(session, content="hello").pk, 10)
    assert seen == [1]


def test_the_deltas_put_together_are_the_answer(session: Session, scripted: ScriptedModel) -> None:
    scripted.script(Reply(chunks=["Ein ", "Gr", "üß", "dich 👋🏽", " — fertig"], chunk_delay=0.07))
    control.wait_for_turn(control.start_turn(session, content="hi").pk, 10)
    answer = session.messages.get(role="assistant")
    text = ""
    for event in event_log.read_events(session.pk, 0):
        if event.name == "message.delta":
            assert event.data["offset"] == len(text)
            text += event.data["text"]
    assert text == answer.content == "Ein Grüßdich 👋🏽 — fertig"
    assert event_log.join_deltas(answer.pk) == (text, "")


def test_it_tells_its_story_in_order(session: Session, scripted: ScriptedModel) -> None:
    scripted.script(Reply(chunks=["Hello."]))
    control.wait_for_turn(control.start_turn(session, content="hi").pk, 10)
    assert [name for name in names_of(session) if name.startswith(("turn.", "message."))] == [
        "turn.started",
        "message.created",
        "message.created",
        "message.delta",
        "message.completed",
        "turn.completed",
    ]


def test_a_second_turn_is_refused_while_one_runs(session: Session, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="slow", delay=1.0))
    first = control.start_turn(session, content="one")
    with pytest.raises(leases.TurnRunning) as refused:
        control.start_turn(session, content="two")
    assert refused.value.turn_id == first.pk
    control.wait_for_turn(first.pk, 10)
    assert session.messages.filter(role="user").count() == 1


def test_the_same_idempotency_key_is_the_same_turn(
    session: Session, scripted: ScriptedModel
) -> None:
    first = control.wait_for_turn(
        control.start_turn(session, content="one", idempotency_key="k", payload_hash="a").pk, 10
    )
    assert (
        control.start_turn(session, content="one", idempotency_key="k", payload_hash="a").pk
        == first.pk
    )
    with pytest.raises(control.IdempotencyConflict):
        control.start_turn(session, content="other", idempotency_key="k", payload_hash="b")
    assert len(scripted.requests) == 1


def test_a_session_without_a_model_takes_the_default_one_when_it_sends(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Hello."))
    Session.objects.filter(pk=session.pk).update(model=None)
    turn = control.wait_for_turn(control.start_turn(session, content="hello").pk, 10)
    session.refresh_from_db()
    assert (turn.status, session.model) == (Turn.Status.COMPLETED, model)


def test_a_session_for_which_there_is_no_model_stores_nothing(
    session: Session, model: AiModel
) -> None:
    AiModel.objects.update(is_active=False)
    Session.objects.filter(pk=session.pk).update(model=None)
    with pytest.raises(control.NoModel):
        control.start_turn(session, content="hello")
    assert not session.messages.exists()


def test_cancel_keeps_the_partial_answer_as_interrupted(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["word "] * 200, chunk_delay=0.05))
    turn = control.start_turn(session, content="go on")
    wait_until(lambda: "message.delta" in names_of(session))
    assert control.cancel_turn(session.pk)
    turn = control.wait_for_turn(turn.pk, 10)
    answer = session.messages.get(role="assistant")
    assert (turn.status, answer.status) == (Turn.Status.CANCELLED, Message.Status.INTERRUPTED)
    assert answer.content.startswith("word ")
    assert names_of(session)[-1] == "turn.cancelled"
    assert not control.cancel_turn(session.pk)


def test_a_process_that_stops_writes_down_what_was_said(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["word "] * 200, chunk_delay=0.05))
    turn = control.start_turn(session, content="go on")
    wait_until(lambda: "message.delta" in names_of(session))
    turn_runner.stop()
    turn.refresh_from_db()
    assert turn.status == Turn.Status.INTERRUPTED
    assert session.messages.get(role="assistant").content.startswith("word ")


def test_a_dead_process_leaves_a_partial_answer_that_is_marked(session: Session) -> None:
    turn = Turn.objects.create(session=session, lease_until=timezone.now() - timedelta(seconds=1))
    message = append_message(session.pk, turn, role="assistant", status="streaming")
    append_events(
        session.pk, ("message.delta", {"message": message.pk, "offset": 0, "text": "Half a sen"})
    )
    assert lifecycle.recover_dead_turns() == 1
    message.refresh_from_db()
    assert (message.status, message.content) == ("interrupted", "Half a sen")
    assert names_of(session)[-1] == "turn.failed"
    assert lifecycle.recover_dead_turns() == 0


def test_a_failed_call_keeps_the_question_and_invents_no_answer(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(status=401, body=b'{"error": {"message": "bad key sk-secret"}}')
    turn = control.wait_for_turn(control.start_turn(session, content="hello").pk, 10)
    assert turn.status == Turn.Status.FAILED
    assert turn.error is not None
    assert turn.error["type"] == "provider_auth"
    assert words_of(session) == [("user", "hello", "complete")]


def test_a_cut_stream_keeps_what_was_said(session: Session, scripted: ScriptedModel) -> None:
    scripted.script(Reply(chunks=["one ", "two ", "three "], cut_after=2, chunk_delay=0.05))
    turn = control.wait_for_turn(control.start_turn(session, content="count").pk, 10)
    assert turn.status == Turn.Status.FAILED
    assert words_of(session)[1] == ("assistant", "one two ", "interrupted")


def test_an_empty_answer_is_a_problem_not_a_message(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text=""))
    turn = control.wait_for_turn(control.start_turn(session, content="hello").pk, 10)
    assert turn.status == Turn.Status.FAILED
    assert words_of(session) == [("user", "hello", "complete")]


def test_tools_run_and_the_turn_goes_on(session: Session, scripted: ScriptedModel) -> None:
    scripted.script(
        Reply(
            tool_calls=[
                calculating("6*7", id="a"),
                ToolCall(id="b", name="calculate", arguments="{broken"),
            ]
        ),
        Reply(text="It is 42."),
    )
    turn = control.wait_for_turn(control.start_turn(session, content="6 times 7?").pk, 10)
    assert turn.status == Turn.Status.COMPLETED
    results = {m.tool_call_id: m for m in session.messages.filter(role="tool")}
    assert "42" in results["a"].content
    assert results["b"].is_error
    sent = scripted.requests[-1].json["messages"]
    assert [m["role"] for m in sent if m["role"] != "system"] == [
        "user",
        "assistant",
        "tool",
        "tool",
    ]


def test_a_call_is_told_with_the_message_that_makes_it(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=[calculating("6*7", id="a")]), Reply(text="It is 42."))
    control.wait_for_turn(control.start_turn(session, content="6 times 7?").pk, 10)
    told = SessionEvent.objects.get(name="tool_call.started").data
    asking = session.messages.get(role="assistant", content="")
    assert told == {
        "message": asking.pk,
        "id": "a",
        "name": "calculate",
        "arguments": '{"expression": "6*7"}',
    }


@pytest.mark.parametrize(
    "garbage",
    [
        ToolCall(id="i" * 300, name="calculate", arguments="{}"),
        ToolCall(id="a", name="n" * 200, arguments="{}"),
        ToolCall(id="a\0", name="calc\0ulate", arguments='{"expression": "6\0*7"}'),
    ],
)
def test_a_call_that_no_column_holds_is_answered_all_the_same(
    session: Session, scripted: ScriptedModel, garbage: ToolCall
) -> None:
    scripted.script(Reply(tool_calls=[garbage], reasoning="Hm\0m"), Reply(text="Sorry."))
    turn = control.wait_for_turn(control.start_turn(session, content="6 times 7?").pk, 10)
    assert turn.status == Turn.Status.COMPLETED
    assert (
        session.messages.get(role="tool").tool_call_id
        == session.messages.get(role="assistant", content="").tool_calls[0]["id"]
    )


def test_a_model_that_only_calls_tools_is_stopped_after_the_rounds_of_the_setting(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.CHATCORE, "TOOL_ROUNDS", 3)
    scripted.default = lambda _: Reply(tool_calls=[calculating("1+1", id="x")])
    turn = control.wait_for_turn(control.start_turn(session, content="loop").pk, 20)
    assert turn.error is not None
    assert turn.error["type"] == "tool_rounds_exceeded"
    assert len(scripted.requests) == 3


def test_it_announces_the_response_once_when_it_is_committed(
    session: Session, scripted: ScriptedModel
) -> None:
    heard: list[bool] = []

    def listener(*, message_id: int, **_: object) -> None:
        heard.append(Message.objects.filter(pk=message_id, status="complete").exists())

    response_completed.connect(listener, weak=False, dispatch_uid="test")
    try:
        control.start_turn(session, content="hi")
        turn_runner.drain()
    finally:
        response_completed.disconnect(dispatch_uid="test")
    assert heard == [True]


def calculating(expression: str, *, id: str) -> ToolCall:
    return ToolCall(id=id, name="calculate", arguments=json.dumps({"expression": expression}))

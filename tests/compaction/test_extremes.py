"""Tiny windows, giant messages and hundreds of calls at once, under every preset."""

from typing import Any

import pytest

from chatcore.models import Message, Session
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    list_event_names,
    read_stored_messages,
    say,
    summarize_or_chat,
)
from tests.support.preset_sessions import create_policy, join_message_texts, list_tool_results
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

CLEAR = {"context_overflow", "context_budget_exceeded"}
STATE = "TASK: tea.\nPROGRESS: none\nREMAINING: tea.\nDATA: none\nDECISIONS: none"


@pytest.fixture(
    params=mark_others_slow(["oneclaw", "neurolink", "lota", "wolffish", "baseagent"], first=2)
)
def session_under(request: Any, session: Session, scripted: ScriptedModel) -> Session:
    """Return a session under each preset, without waits between its calls."""
    scripted.default = summarize_or_chat(summary=Reply(text=STATE), chat=Reply(text="Yes."))
    Session.objects.filter(pk=session.pk).update(
        policy=create_policy(request.param, summary={"backoff": []})
    )
    session.refresh_from_db()
    return session


def with_window(session: Session, tokens: int) -> None:
    assert session.model is not None
    AiModel.objects.filter(pk=session.model.pk).update(context_window_size=tokens)


def ended_clearly(session: Session, turn: Any) -> bool:
    """Return True if the turn was answered or refused by a typed error, and each run has an end.

    Nothing that was stored may have changed.
    """
    names = list_event_names(session, "compaction")
    assert names.count("compaction.started") <= len(names) - names.count("compaction.started")
    assert not CompactionRun.objects.filter(error__contains="Error:").exists()  # no run crashed
    return turn.status == "completed" or (turn.error or {}).get("type") in CLEAR


@pytest.mark.parametrize("words", mark_others_slow([3_000, 400, 3]))
def test_a_window_of_512_tokens(session_under: Session, words: int) -> None:
    with_window(session_under, 512)
    fill_session(session_under, messages=6, tokens=100)
    before = read_stored_messages(session_under)
    assert ended_clearly(session_under, say(session_under, "tea " * words))
    assert ended_clearly(session_under, say(session_under, "Hello?"))
    assert read_stored_messages(session_under)[:6] == before


@pytest.mark.slow
@pytest.mark.heavy
def test_a_message_of_five_megabytes(session_under: Session, scripted: ScriptedModel) -> None:
    with_window(session_under, 128_000)  # a smaller one only takes more calls
    fill_session(session_under, messages=3)
    Message.objects.create(
        session=session_under, seq=4, role="assistant", content="all of it " * 500_000
    )
    Session.objects.filter(pk=session_under.pk).update(last_seq=4, message_count=4)
    turn = say(session_under, "And now?")
    assert ended_clearly(session_under, turn)
    assert turn.status == "completed"
    assert len(join_message_texts(list_chat_calls(scripted)[-1])) < 128_000 * 5


@pytest.mark.slow
def test_four_hundred_calls_at_once(session_under: Session, scripted: ScriptedModel) -> None:
    called = [{"id": f"c{number}", "name": "look_up", "arguments": "{}"} for number in range(400)]
    rows = [
        Message(session=session_under, seq=1, role="user", content="Look all of them up."),
        Message(session=session_under, seq=2, role="assistant", tool_calls=called),
        *(
            Message(
                session=session_under,
                seq=seq,
                role="tool",
                tool_call_id=f"c{seq - 3}",
                tool_name="look_up",
                content=f"{seq} " * 40,
            )
            for seq in range(3, 403)
        ),
        Message(session=session_under, seq=403, role="assistant", content="Here they are."),
    ]
    Message.objects.bulk_create(rows)
    Session.objects.filter(pk=session_under.pk).update(last_seq=403, message_count=403)
    turn = say(session_under, "And now?")
    assert ended_clearly(session_under, turn)
    request = list_chat_calls(scripted)[-1]
    call_ids = [
        call["id"]
        for message in request.json["messages"]
        for call in message.get("tool_calls") or []
    ]
    assert len(list_tool_results(request)) == len(call_ids)  # whole, or gone together


def test_a_provider_that_refuses_everything(
    session_under: Session, scripted: ScriptedModel
) -> None:
    fill_session(session_under, messages=6)
    scripted.default = make_overflow(tokens=9_000, window=8_192)
    before = read_stored_messages(session_under)
    turn = say(session_under, "And now?")
    assert ended_clearly(session_under, turn)
    assert turn.status == "failed"
    assert len(list_chat_calls(scripted)) <= 4
    session_under.refresh_from_db()
    assert session_under.compacted_summary is None
    assert read_stored_messages(session_under)[:6] == before


def test_every_preset_is_put_to_this() -> None:
    assert {"oneclaw", "neurolink", "lota", "wolffish", "baseagent"} <= set(PRESETS)

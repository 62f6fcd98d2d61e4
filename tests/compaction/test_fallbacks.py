"""When a request is too large and no run helps: each kind of fallback, in that request only."""

import pytest

from chatcore.models import Session
from compaction.models import CompactionRun, SessionState
from tests.support.compaction_sessions import (
    NOTICE,
    fill_session,
    list_chat_calls,
    list_event_data,
    list_summary_calls,
    read_message_texts,
    read_stored_messages,
    read_system_text,
    say,
    summarize_or_chat,
    use_policy,
)
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

NUDGE = "[No summary could be written.]"
MARKER = "[Something was left out here.]"


@pytest.fixture(autouse=True)
def _no_summaries(scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat(summary=Reply(status=500))


@pytest.mark.parametrize("kind", ["drop_oldest", "slide_window", "notice"])
def test_over_the_window_the_request_is_made_smaller_and_what_is_stored_stays(
    session: Session, scripted: ScriptedModel, kind: str
) -> None:
    fill_session(use_policy(session, fallback={"kind": kind}), messages=20)
    before = read_stored_messages(session)
    turn = say(session, "What now?")
    assert (turn.status, turn.notices) == ("completed", [NOTICE])
    assert read_message_texts(list_chat_calls(scripted)[0])[-1] == "What now?"
    assert len(str(list_chat_calls(scripted)[0].json["messages"])) // 4 < 6963 + 100
    assert read_stored_messages(session)[:20] == before
    assert len(list_event_data(session, "context.trimmed")) == 1


def test_drop_oldest_drops_the_oldest(session: Session, scripted: ScriptedModel) -> None:
    fill_session(use_policy(session, fallback={"kind": "drop_oldest"}), messages=20)
    say(session)
    assert [text[:4] for text in read_message_texts(list_chat_calls(scripted)[0])] == [
        *(f"{seq:04d}" for seq in range(9, 21)),
        "And ",
    ]


def test_slide_window_keeps_the_first_pair_and_says_that_something_is_gone(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(
        use_policy(
            session,
            fallback={"kind": "slide_window"},
            protect={"first": 2},
            slide={"marker": MARKER},
        ),
        messages=20,
    )
    say(session)
    texts = [text[:4] for text in read_message_texts(list_chat_calls(scripted)[0])]
    assert texts[:2] == ["0001", "0002"]
    assert texts[2] == "0011"
    assert MARKER in read_system_text(list_chat_calls(scripted)[0])


def test_notice_tells_the_model_that_no_summary_was_written(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(
        use_policy(session, fallback={"kind": "notice"}, inject={"failure_nudge": NUDGE}),
        messages=20,
    )
    say(session)
    assert NUDGE in read_system_text(list_chat_calls(scripted)[0])


def test_error_is_a_clear_one_before_any_call(session: Session, scripted: ScriptedModel) -> None:
    fill_session(use_policy(session, fallback={"kind": "error"}), messages=20)
    turn = say(session)
    assert turn.error is not None
    assert (turn.status, turn.error["type"]) == ("failed", "context_budget_exceeded")
    assert "could not be compacted; scripted/test-model takes at most 8,192" in turn.error["detail"]
    assert len(list_summary_calls(scripted)) == 2
    assert not list_chat_calls(scripted)
    assert list_event_data(session, "context.trimmed") == []


def test_under_the_window_an_error_policy_refuses_nothing(
    session: Session, scripted: ScriptedModel
) -> None:
    SessionState.objects.create(session_id=session.pk, trimming=True)
    fill_session(use_policy(session, fallback={"kind": "error"}), messages=14)
    turn = say(session)
    assert (turn.status, turn.notices) == ("completed", [])
    assert len(read_message_texts(list_chat_calls(scripted)[0])) == 15


def test_after_a_refusal_an_error_policy_makes_room_too(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(use_policy(session, fallback={"kind": "error"}), messages=12)
    scripted.script(make_overflow(tokens=9000, window=8192))
    assert say(session).status == "completed"
    assert len(list_chat_calls(scripted)) == 2


@pytest.mark.parametrize("kind", ["drop_oldest", "slide_window", "notice"])
def test_a_policy_may_keep_it_from_the_user(
    session: Session, scripted: ScriptedModel, kind: str
) -> None:
    fill_session(use_policy(session, fallback={"kind": kind, "notify": False}), messages=20)
    for _ in range(2):
        assert say(session).notices == []
    assert list_event_data(session, "context.trimmed") == []
    assert CompactionRun.objects.get().status == "fell_back"


def test_the_words_are_the_policys(session: Session, scripted: ScriptedModel) -> None:
    fill_session(
        use_policy(session, fallback={"notice": "Older messages were left out."}), messages=20
    )
    assert say(session).notices == ["Older messages were left out."]

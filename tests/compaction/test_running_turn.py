"""A turn that is being answered: the user's own words stay in every one of its requests."""

import dataclasses
from typing import Any

import pytest

from chatcore.models import Session
from chatcore.tools import registry as tool_registry
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_chat_calls,
    read_message_texts,
    say,
    summarize_or_chat,
    use_anthropic,
)
from tests.support.preset_sessions import create_policy
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "Which of the six harbors is the cheapest one for a boat of nine meters?"
PAGE = "The harbor of the north has room for a boat. " * 220  # about 2,500 tokens


@pytest.fixture(autouse=True)
def _harbors(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = dataclasses.replace(
        tool_registry.BUILT_IN_TOOLS["search_history"],
        run=lambda arguments, session_id: f"{arguments['query']}: {PAGE}",
    )
    monkeypatch.setitem(tool_registry.BUILT_IN_TOOLS, "search_history", tool)


PRESETS = ["oneclaw", "neurolink", "lota", "wolffish", "baseagent", "chatcore"]


@pytest.fixture(params=mark_others_slow(PRESETS, first=2))
def session_under(request: Any, session: Session, scripted: ScriptedModel) -> Session:
    """Return a session under each preset, without waits between its calls."""
    scripted.default = summarize_or_chat(chat=Reply(text="The one in the north."))
    Session.objects.filter(pk=session.pk).update(
        policy=create_policy(request.param, summary={"backoff": []})
    )
    session.refresh_from_db()
    return session


def look_up(*numbers: int) -> Reply:
    return Reply(
        tool_calls=[
            make_tool_call("search_history", {"query": f"harbor {number}"}, id=f"call_{number}")
            for number in numbers
        ]
    )


def check_requests(scripted: ScriptedModel, *, calls: int) -> None:
    """Check that all requests show the question, and that the last one holds a part of each."""
    requests = list_chat_calls(scripted)
    assert len(requests) == calls
    for request in requests:
        messages = [str(message) for message in request.json["messages"]]
        assert any(QUESTION in message for message in messages)
        assert not any("Earlier messages are not shown" in message for message in messages)
    assert "harbor 6: The harbor" in str(requests[-1].json["messages"])


@pytest.mark.parametrize("summary", [None, Reply(status=500)], ids=["summaries", "no summaries"])
def test_six_tool_results_do_not_push_the_question_out(
    session_under: Session, scripted: ScriptedModel, summary: Reply | None
) -> None:
    ask_with_six_rounds(session_under, scripted, summary)


def test_nor_in_anthropics_protocol(session: Session, scripted: ScriptedModel) -> None:
    use_anthropic(session, scripted)
    ask_with_six_rounds(session, scripted, None)


def ask_with_six_rounds(session: Session, scripted: ScriptedModel, summary: Reply | None) -> None:
    fill_session(session, messages=6, tokens=300)
    numbers = iter(range(1, 7))

    def answer(request: dict[str, Any]) -> Reply:
        if "<transcript>" in str(request["messages"]):
            return summary or Reply(text=SUMMARY)
        number = next(numbers, 0)
        return look_up(number) if number else Reply(text="In the north.")

    scripted.default = answer
    turn = say(session, QUESTION)
    assert turn.status == "completed"
    check_requests(scripted, calls=7)


def test_six_results_of_one_answer_are_shortened_and_the_question_stays(
    session_under: Session, scripted: ScriptedModel
) -> None:
    scripted.script(look_up(1, 2, 3, 4, 5, 6))
    turn = say(session_under, QUESTION)
    assert turn.status == "completed"
    check_requests(scripted, calls=2)
    texts = read_message_texts(list_chat_calls(scripted)[-1])
    assert sum("harbor" in text and "left out here" in text for text in texts) == 6
    assert sum(map(len, texts)) // 4 < 8_192


def test_a_result_larger_than_the_window_is_shortened(
    session: Session, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=2_000)
    scripted.script(look_up(6))
    turn = say(session, QUESTION)
    assert turn.status == "completed"
    check_requests(scripted, calls=2)

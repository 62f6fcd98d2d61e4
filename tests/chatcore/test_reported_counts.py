"""A provider's count of tokens is believed only if it can be that of what was sent."""

from typing import Any

import pytest

from chatcore.models import Session
from tests.support.compaction_sessions import fill_session, list_chat_calls, say
from tests.support.context_usage import load_usage
from tests.support.guarded_requests import triggers
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("count", [25, 1_000, 3_000])
def test_a_count_far_below_what_was_sent_is_told_and_not_believed(
    count: int, session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=12)  # of 500 tokens each
    scripted.default = Reply(text="Sure.", usage=(count, 5))
    turn = say(session)
    answer = session.messages.latest("seq")
    believed = count == 3_000 and answer.token_count_input
    assert bool(turn.notices) is not bool(believed)
    usage = load_usage(session.pk)
    assert usage["estimated_input_tokens"] > 5_900 or believed
    if turn.notices:
        assert f"The server read about {count:,} of 6," in turn.notices[0]
        assert answer.token_count_input is None


@pytest.mark.parametrize("count", [50_000, 10**12, -1])
def test_an_absurd_count_is_no_count_and_no_compaction(
    count: int, session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=6)
    scripted.default = Reply(text="Sure.", usage=(count, 5))
    turn = say(session)
    assert (turn.status, turn.notices) == ("completed", [])
    assert session.messages.latest("seq").token_count_input is None
    assert load_usage(session.pk)["should_compact"] is False
    assert triggers() == []
    assert len(list_chat_calls(scripted)) == 1


def test_a_text_of_one_sign_has_few_tokens(session: Session, scripted: ScriptedModel) -> None:
    scripted.default = Reply(text="Sure.", usage=(400, 5))
    turn: Any = say(session, "x" * 20_000)
    assert turn.notices == []
    assert session.messages.latest("seq").token_count_input == 400

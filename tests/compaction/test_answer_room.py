"""A request that leaves its answer no room is made smaller before it is sent."""

import pytest

from chatcore.models import Session
from models_registry.models import AiModel
from tests.support.compaction_sessions import fill_session, list_chat_calls, say, summarize_or_chat
from tests.support.guarded_requests import triggers
from tests.support.openai_client import count_tokens
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("reserve", "is_compacted"), [(None, True), (0, False)])
def test_the_answer_has_a_least_room(
    reserve: int | None,
    is_compacted: bool,
    session: Session,
    model: AiModel,
    scripted: ScriptedModel,
) -> None:
    AiModel.objects.update(output_reserve=reserve)
    scripted.default = summarize_or_chat()
    fill_session(session, messages=14, tokens=500)
    say(session, "lisbon trip " * 100)  # 95 % of 8,192 tokens with the tools
    sent = count_tokens(list_chat_calls(scripted)[0].json)
    assert (triggers() == ["before_request"]) is is_compacted
    assert (sent < 8_192 * 0.9) is is_compacted

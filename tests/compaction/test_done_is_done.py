"""A model that follows its prompt summarizes finished work as finished."""

from typing import Any

import pytest

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.systems.kit.settings import TailKnobs
from tests.support.compaction_sessions import fill_session, say
from tests.support.ledger_sessions import compact, read_next_request
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

STILL_OPEN = "The deposit for Porto is still open."
DONE = "The deposit for Porto was sent."

# Other policies send the first message, which is the open one here, word for word.
SUMMARIZING_ALL = [name for name, policy in PRESETS.items() if not policy.get(TailKnobs).first]


def answer(request: dict[str, Any]) -> Reply:
    """Summarize what the prompt says; drop a finished item only if the prompt asks for it."""
    prompt = str(request["messages"])
    if "<transcript>" not in prompt:
        return Reply(text="All right.")
    sentences = [each for each in (STILL_OPEN, DONE) if each in prompt]
    is_asked = "Newer messages decide" in prompt or "state what is corrected as it is" in prompt
    if DONE in sentences and is_asked:
        sentences = [DONE]
    return Reply(text=" ".join(["They talked about a trip to Lisbon.", *sentences]))


@pytest.mark.parametrize("policy", SUMMARIZING_ALL)
def test_a_finished_step_is_no_longer_told_as_open(
    session: Session, scripted: ScriptedModel, policy: str
) -> None:
    Session.objects.filter(pk=session.pk).update(policy=policy)
    scripted.default = answer
    for sentence in (STILL_OPEN, DONE):
        say(session, sentence)
        session.refresh_from_db()
        fill_session(session)
        compact(session)
        request = read_next_request(session, scripted)
        assert sentence in request
    request = read_next_request(session, scripted)
    assert DONE in request
    assert STILL_OPEN not in request

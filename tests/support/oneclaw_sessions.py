"""The session of OneClaw's tests, in both protocols, and a provider that fails."""

import pytest

from chatcore.models import Session
from tests.support.compaction_sessions import summarize_or_chat, use_anthropic
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

BROKEN = Reply(status=500, text="network error")


@pytest.fixture(params=mark_others_slow(["openai", "anthropic"]))
def session(request: pytest.FixtureRequest, session: Session, scripted: ScriptedModel) -> Session:
    """The same session, spoken to in both protocols."""
    if request.param == "anthropic":
        use_anthropic(session, scripted)
    scripted.default = summarize_or_chat()
    return session

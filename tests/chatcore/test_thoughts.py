"""Signed thoughts in the requests of a session: those of the running turn, and no others."""

import pytest
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from tests.support.compaction_sessions import list_chat_calls, use_anthropic
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


def test_only_the_thoughts_of_the_running_turn_go_back(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    """A summary, an edit or a deletion would break the older ones."""
    use_anthropic(session, scripted)
    call = make_tool_call("calculate", {"expression": "1 + 1"})
    scripted.script(
        Reply(reasoning="Hm 1.", text="Hello."),
        Reply(reasoning="Hm 2.", tool_calls=[call]),
        Reply(text="Two."),
        Reply(text="Bye."),
    )
    address = f"/api/v1/sessions/{session.pk}/messages"
    for text in ("Hello.", "What is 1 + 1?", "Bye."):
        assert api.post(address, {"content": text}).status_code == 201
    sent = [str(received.json["messages"]) for received in list_chat_calls(scripted)]
    thoughts = [[thought for thought in ("Hm 1.", "Hm 2.") if thought in text] for text in sent]
    assert thoughts == [[], [], ["Hm 2."], []]
    assert Message.objects.exclude(provider_data={}).count() == 2

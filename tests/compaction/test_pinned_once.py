"""Pinned messages: sent once, as themselves and not also in the summary; told if too many."""

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.sessions import verification
from chatcore.turns.messages import pin_message
from compaction.runs import engine
from tests.support.compaction_sessions import fill_session, list_summary_calls, use_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

RULE = "Never book a flight on a Friday."


def compact(session: Session, scripted: ScriptedModel, text: str) -> str:
    """Fill the session, compact it, and return what the summary calls were sent."""
    fill_session(session)
    scripted.requests.clear()
    scripted.default = Reply(text=text)
    assert engine.compact_now(session.pk, trigger="manual").status == "applied"
    return str([call.json for call in list_summary_calls(scripted)])


@pytest.mark.parametrize("spans", ["rewritten", "frozen"])
def test_the_summarizer_reads_a_pinned_message_only_when_it_is_unpinned(
    session: Session, scripted: ScriptedModel, api: APIClient, spans: str
) -> None:
    fill_session(use_policy(session, summary={"spans": spans}))
    message = session.messages.get(seq=3)
    session.messages.filter(pk=message.pk).update(content=RULE)
    pin_message(message)
    texts = [f"They planned the {part} part of their trip to Lisbon." for part in ("first", "next")]
    assert [RULE in compact(session, scripted, text) for text in texts] == [False, False]
    preview = api.get(f"/api/v1/sessions/{session.pk}/context/preview").json()
    assert str(preview).count(RULE) == 1
    pin_message(message, pinned=False)
    assert RULE in str(api.get(f"/api/v1/sessions/{session.pk}/context/preview").json())
    assert RULE in compact(session, scripted, "They planned the last part of a trip to Lisbon.")
    preview = api.get(f"/api/v1/sessions/{session.pk}/context/preview").json()
    assert RULE not in str(preview)
    session.refresh_from_db()
    assert list(verification.find_violations(session)) == []


def test_pins_that_crowd_out_the_talk_are_told(
    session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    fill_session(session, messages=20)
    scripted.default = Reply(text="They planned their trip to Lisbon.")
    assert engine.compact_now(session.pk, trigger="manual").reason == ""
    session.messages.filter(seq__gt=10).update(pinned=True)
    fill_session(session, messages=8)
    engine.compact_now(session.pk, trigger="manual")
    run = api.get(f"/api/v1/sessions/{session.pk}/compactions").json()["results"][0]
    assert run["status"] == "applied"
    assert run["reason"].startswith("Pinned messages take about")
    assert "unpin" in run["reason"]

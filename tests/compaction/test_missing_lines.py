"""What a summary leaves out: told over REST, put in, undone, pinned, and gone with its message."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from compaction.runs import engine
from tests.support.compaction_sessions import fill_session, say, summarize_or_chat
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

BUDGET = "The budget for the party is 180 euros."


@pytest.fixture
def summarized(session: Session, scripted: ScriptedModel) -> Session:
    """A session whose summary forgot the budget, under a policy without a ledger."""
    scripted.default = summarize_or_chat(summary=Reply(text="They planned a party in the garden."))
    say(session, f"We plan a party in the garden. {BUDGET}")
    fill_session(session)
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied", run.reason
    session.refresh_from_db()
    return session


def read_missing(api: APIClient, session: Session) -> dict[str, Any]:
    response = api.get(f"/api/v1/sessions/{session.pk}/context/missing")
    assert response.status_code == 200
    body: dict[str, Any] = response.json()
    return body


def list_missing(api: APIClient, session: Session) -> list[str]:
    return [line["text"] for line in read_missing(api, session)["lines"]]


def test_a_forgotten_value_is_told_with_its_message(api: APIClient, summarized: Session) -> None:
    missing = read_missing(api, summarized)
    first = Message.objects.get(session=summarized, seq=1)
    assert [(line["text"], line["message"]) for line in missing["lines"]] == [(BUDGET, first.pk)]
    assert (missing["count"], missing["is_complete"]) == (1, True)


def test_what_is_put_in_is_sent_and_can_be_taken_back(api: APIClient, summarized: Session) -> None:
    missing = read_missing(api, summarized)
    summary = f"{summarized.compacted_summary}\n\n{missing['heading']}\n- {BUDGET}"
    path = f"/api/v1/sessions/{summarized.pk}"
    assert api.patch(f"{path}/summary", {"summary": summary}, format="json").status_code == 200
    assert list_missing(api, summarized) == []
    assert api.post(f"{path}/context/undo").status_code == 200
    assert list_missing(api, summarized) == [BUDGET]


def test_a_pinned_message_misses_nothing(api: APIClient, summarized: Session) -> None:
    first = Message.objects.get(session=summarized, seq=1)
    api.post(f"/api/v1/messages/{first.pk}/pin", {"pinned": True}, format="json")
    assert list_missing(api, summarized) == []


def test_nothing_of_a_deleted_message_is_told(api: APIClient, summarized: Session) -> None:
    read_missing(api, summarized)
    first = Message.objects.get(session=summarized, seq=1)
    assert api.delete(f"/api/v1/messages/{first.pk}").status_code == 204
    assert list_missing(api, summarized) == []


def test_each_thing_is_told_once_and_a_story_is_no_rule(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    forgetful = "They planned a party in the garden, and found which plans counted."
    scripted.default = summarize_or_chat(summary=Reply(text=forgetful))
    story = " ".join(["I always find that the plans", *["which we made"] * 15, "never counted."])
    cups = "Never buy plastic cups."
    say(session, f"We plan a party in the garden. {story} Never use tabs. {cups}")
    say(session, "never  use tabs!")
    fill_session(session)
    say(session, f"And remember: {cups.lower()}")
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied", run.reason
    assert list_missing(api, session) == ["Never use tabs."]


def test_without_a_summary_nothing_is_missing(api: APIClient, session: Session) -> None:
    say(session, BUDGET)
    assert read_missing(api, session)["lines"] == []

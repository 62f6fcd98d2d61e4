"""What a user wrote into a summary stays word for word until the user changes it."""

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.turns.forks import fork_session
from compaction.core.presets import PRESETS
from compaction.runs import engine
from tests.support.compaction_sessions import fill_session
from tests.support.frozen_talk import use_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

OWN = "Never book the Hotel Aurora again."


def compact(session: Session, scripted: ScriptedModel, text: str) -> str:
    fill_session(session)
    scripted.default = Reply(text=text)
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied", run.reason
    session.refresh_from_db()
    return session.compacted_summary or ""


def edit(api: APIClient, session: Session, summary: str) -> None:
    url = f"/api/v1/sessions/{session.pk}/summary"
    response = api.patch(url, {"summary": summary}, format="json")
    assert response.status_code == 200, response.content


@pytest.mark.parametrize("policy", PRESETS)
def test_it_stays_through_compactions_and_goes_when_the_user_removes_it(
    session: Session, scripted: ScriptedModel, api: APIClient, policy: str
) -> None:
    use_policy(session, policy)
    first = compact(session, scripted, "The user plans a trip to Lisbon by train.")
    edit(api, session, f"{first} {OWN}")
    for number in range(3):
        summary = compact(session, scripted, f"The trip to Lisbon is planned for group {number}.")
        assert summary.count(OWN) == 1
    edit(api, session, "The trip to Lisbon is planned.")
    summary = compact(session, scripted, "The user still plans the trip to Lisbon.")
    assert OWN not in summary


@pytest.mark.slow
def test_an_export_and_a_fork_carry_it_whether_it_was_compacted_or_not(
    session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    later = "Pay in cash at the Hotel Lux."
    first = compact(session, scripted, "The user plans a trip to Lisbon by train.")
    edit(api, session, f"{first} {OWN}")
    summary = compact(session, scripted, "The user plans a trip to Lisbon by bus.")
    edit(api, session, f"{summary} {later}")
    exported = api.get(f"/api/v1/sessions/{session.pk}/export").json()
    imported = api.post("/api/v1/sessions/import", exported, format="json").json()
    session.refresh_from_db()
    fork = fork_session(session.messages.latest("seq"))
    for copy in (Session.objects.get(pk=imported["id"]), fork):
        text = compact(copy, scripted, "The trip to Lisbon is still planned.")
        assert (text.count(OWN), text.count(later)) == (1, 1)


@pytest.mark.parametrize("items", [[{"text": 5}], ["words"], [{"text": ""}]])
def test_a_file_with_anything_else_is_refused(
    session: Session, scripted: ScriptedModel, api: APIClient, items: list[object]
) -> None:
    compact(session, scripted, "The user plans a trip to Lisbon by train.")
    exported = api.get(f"/api/v1/sessions/{session.pk}/export").json()
    response = api.post(
        "/api/v1/sessions/import", exported | {"own_sentences": items}, format="json"
    )
    assert response.status_code == 400
    assert "own_sentences" in str(response.json())

"""The days of messages are those of the user's time zone."""

from datetime import UTC, datetime

import pytest
from django.test import Client, override_settings
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from tests.support.compaction_sessions import SUMMARY, fill_session, read_prompt
from tests.support.frozen_talk import use_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/api/v1/preferences"
# The second of September in Tokyo, and in Honolulu still the first.
NIGHT = datetime(2026, 9, 1, 22, tzinfo=UTC)


@pytest.fixture(params=["oneclaw", "chatcore"])
def told(request: pytest.FixtureRequest, session: Session, scripted: ScriptedModel) -> Session:
    use_policy(session, request.param)
    fill_session(session)
    Message.objects.filter(session=session).update(created_at=NIGHT)
    first = "My address is Elm Street 5. The demo is at 10:40. " + "Lisbon. " * 300
    Message.objects.filter(session=session, seq=1).update(content=first)
    scripted.default = Reply(text=SUMMARY)
    return session


def compact(api: APIClient, session: Session) -> str:
    """Compact a chat, and return what the next request sends."""
    run = api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True}).json()
    assert run["status"] == "applied", run
    preview = api.get(f"/api/v1/sessions/{session.pk}/context/preview").json()
    return f"{preview['system']}\n{preview['messages']}"


@pytest.mark.parametrize(
    ("zone", "day"), [("Asia/Tokyo", 2), ("Pacific/Honolulu", 1), ("", 1)], ids=str
)
def test_days_are_told_in_the_zone_that_the_user_set(
    told: Session, api: APIClient, scripted: ScriptedModel, zone: str, day: int
) -> None:
    assert api.get(PATH).json()["time_zone"] == ""
    assert api.patch(PATH, {"time_zone": zone}).json()["time_zone"] == zone
    sent_text = compact(api, told)
    assert f" {day} September 2026]" in read_prompt(scripted)
    assert f" {day} September 2026:" in sent_text
    assert f"{3 - day} September 2026" not in read_prompt(scripted) + sent_text


def test_a_line_of_the_ledger_has_the_day_of_the_users_zone(
    session: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    use_policy(session, "chatcore")
    fill_session(session)
    Message.objects.filter(session=session).update(created_at=NIGHT)
    first = "My address is Elm Street 5. The demo is at 10:40. " + "Lisbon. " * 300
    Message.objects.filter(session=session, seq=1).update(content=first)
    scripted.default = Reply(text=SUMMARY)
    api.patch(PATH, {"time_zone": "Asia/Tokyo"})
    assert "[1, 2 September 2026]" in compact(api, session)


def test_a_stored_summary_keeps_its_days(told: Session, api: APIClient) -> None:
    sent_text = compact(api, told)
    api.patch(PATH, {"time_zone": "Asia/Tokyo"})
    preview = api.get(f"/api/v1/sessions/{told.pk}/context/preview").json()
    assert f"{preview['system']}\n{preview['messages']}" == sent_text


def test_the_page_sets_the_zone_of_the_browser_when_it_changes(
    told: Session, api: APIClient, client: Client
) -> None:
    assert told.owner is not None
    client.force_login(told.owner)
    for zone in ("Asia/Tokyo", "Europe/Berlin"):
        client.cookies["tz"] = zone
        assert client.get(f"/c/{told.pk}/").status_code == 200
        assert api.get(PATH).json()["time_zone"] == zone
    client.cookies["tz"] = "Nowhere/Land"
    client.get(f"/c/{told.pk}/")
    api.patch(PATH, {"time_zone": "Asia/Tokyo"})
    client.cookies["tz"] = "Europe/Berlin"  # as before: what the user has set stays
    client.get(f"/c/{told.pk}/")
    assert api.get(PATH).json()["time_zone"] == "Asia/Tokyo"


@pytest.mark.parametrize("name", ["Nowhere/Land", "../../etc/passwd", "x" * 65, 7, None, "a\0b"])
def test_what_is_no_time_zone_is_refused(api: APIClient, name: object) -> None:
    reply = api.patch(PATH, {"time_zone": name})
    assert reply.status_code == 400
    assert {error["field"] for error in reply.json()["errors"]} == {"time_zone"}


def test_another_user_has_another_zone(api: APIClient, client: Client) -> None:
    api.patch(PATH, {"time_zone": "Asia/Tokyo"})
    assert client.get(PATH).status_code in (401, 403)


@override_settings(TIME_ZONE="Asia/Tokyo")
def test_without_one_the_zone_of_the_installation_holds(
    told: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    compact(api, told)
    assert " 2 September 2026]" in read_prompt(scripted)

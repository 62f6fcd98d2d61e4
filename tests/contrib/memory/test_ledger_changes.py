"""What people do with the ledger: read it over REST, add, edit, pin, drop and delete lines."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from chatcore.models import Session
from compaction.memory.models import LedgerLine
from compaction.models import SessionState
from compaction.runs import engine
from tests.support.compaction_sessions import fill_session, say
from tests.support.ledger_sessions import RULE, compact, list_texts, read_next_request, session
from tests.support.scripted_model import ScriptedModel

__all__ = ["session"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def address(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}/ledger"


@pytest.fixture
def remembered(session: Session) -> LedgerLine:
    """The line of a rule, in a session that is compacted."""
    say(session, f"Hello! {RULE} What do you think of Lisbon?")
    fill_session(session)
    compact(session)
    return LedgerLine.objects.get(session=session, kind="rule")


def list_lines(api: APIClient, address: str, query: str = "") -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = api.get(f"{address}{query}").json()["results"]
    return lines


def test_a_line_says_what_was_said_and_where(
    api: APIClient, address: str, session: Session
) -> None:
    say(session, RULE)
    [line] = list_lines(api, address)
    message = session.messages.get(seq=1)
    assert {name: line[name] for name in line if name not in ("id", "created_at")} == {
        "kind": "rule",
        "text": RULE,
        "message": message.pk,
        "seq": 1,
        "role": "user",
        "status": "current",
        "superseded_by": None,
        "holds": "",
        "corrected_by": None,
        "forgotten_by": None,
        "pinned": False,
        "is_edited": False,
        "rule": None,
    }


def test_lines_are_listed_by_kind_and_status(
    api: APIClient, address: str, session: Session
) -> None:
    say(session, f"{RULE} The staging port is 8080.")
    say(session, "The staging port is 9090 now.")
    assert [line["text"] for line in list_lines(api, address, "?kind=value&status=current")] == [
        "The staging port is 9090 now."
    ]
    [old] = list_lines(api, address, "?status=superseded")
    assert (old["text"], old["superseded_by"]) == ("The staging port is 8080.", 3)
    assert api.get(f"{address}?status=old").json()["errors"][0]["field"] == "status"
    page = api.get(f"{address}?limit=1").json()
    assert len(page["results"]) == 1
    assert page["next"]


def test_a_line_by_hand_is_sent_from_the_next_request_on(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    response = api.post(address, {"kind": "rule", "text": " Be\u0000 brief. "}, format="json")
    assert response.status_code == 201
    assert (response.json()["text"], response.json()["message"]) == ("Be brief.", None)
    assert "- Be brief." in read_next_request(session, scripted)
    assert api.delete(f"{address}/{response.json()['id']}").status_code == 204
    assert "Be brief." not in read_next_request(session, scripted)
    assert not LedgerLine.objects.exists()


def test_a_line_by_hand_may_name_its_message(
    api: APIClient, address: str, session: Session
) -> None:
    say(session, "Well, brief is better.")
    message = session.messages.get(seq=1)
    body = {"kind": "preference", "text": "Brief is better.", "message": message.pk}
    assert api.post(address, body, format="json").json()["seq"] == 1
    stranger = Session.objects.create(owner=session.owner, model=session.model)
    fill_session(stranger, messages=1)
    body["message"] = stranger.messages.get().pk
    assert api.post(address, body, format="json").json()["errors"][0]["field"] == "message"


def test_an_edited_line_is_sent_as_edited_and_never_overwritten(
    api: APIClient,
    address: str,
    session: Session,
    remembered: LedgerLine,
    scripted: ScriptedModel,
) -> None:
    text = "Never book a flight on a Sunday, except in May."
    response = api.patch(f"{address}/{remembered.pk}", {"text": text}, format="json")
    assert (response.status_code, response.json()["is_edited"]) == (200, True)
    request = read_next_request(session, scripted)
    assert text in request
    assert RULE not in request
    SessionState.objects.filter(pk=session.pk).update(ledger_seq=0)
    say(session, RULE)
    fill_session(session)
    compact(session)
    assert list_texts(session, status="current", kind="rule") == [text]
    assert text in read_next_request(session, scripted)


@pytest.mark.parametrize("act", ["drop", "delete"])
def test_a_line_that_is_gone_does_not_come_back(
    api: APIClient,
    address: str,
    session: Session,
    remembered: LedgerLine,
    scripted: ScriptedModel,
    act: str,
) -> None:
    line = f"{address}/{remembered.pk}"
    if act == "drop":
        assert api.patch(line, {"status": "dropped"}, format="json").status_code == 200
        assert [line["text"] for line in list_lines(api, address, "?status=dropped")] == [RULE]
    else:
        assert api.delete(line).status_code == 204
        assert list_lines(api, address, "?kind=rule") == []
        assert api.patch(line, {"pinned": True}, format="json").status_code == 404
    assert RULE not in read_next_request(session, scripted)
    SessionState.objects.filter(pk=session.pk).update(ledger_seq=0)
    say(session, RULE)
    fill_session(session)
    compact(session)
    assert RULE not in read_next_request(session, scripted)
    assert list_texts(session, status="current", text=RULE) == []


def test_a_dropped_line_can_be_taken_back(
    api: APIClient,
    address: str,
    session: Session,
    remembered: LedgerLine,
    scripted: ScriptedModel,
) -> None:
    line = f"{address}/{remembered.pk}"
    api.patch(line, {"status": "dropped"}, format="json")
    api.patch(line, {"status": "current"}, format="json")
    assert RULE in read_next_request(session, scripted)


def test_pinned_lines_come_first_when_the_room_is_small(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    rules = [f"Never send order {number}77 to warehouse {number}." for number in range(150)]
    say(session, " ".join(rules))
    fill_session(session)
    compact(session)
    assert rules[75] not in read_next_request(session, scripted)
    line = LedgerLine.objects.get(session=session, kind="rule", text=rules[75])
    assert (
        api.patch(f"{address}/{line.pk}", {"pinned": True}, format="json").json()["pinned"] is True
    )
    assert rules[75] in read_next_request(session, scripted)
    line.refresh_from_db()
    assert not line.is_edited


@pytest.mark.slow
def test_a_rewind_does_not_bring_a_dropped_line_back(
    api: APIClient,
    address: str,
    session: Session,
    remembered: LedgerLine,
    scripted: ScriptedModel,
) -> None:
    fill_session(session)
    run = compact(session)
    api.patch(f"{address}/{remembered.pk}", {"status": "dropped"}, format="json")
    engine.rewind_run(run)
    assert RULE not in read_next_request(session, scripted)
    assert list_texts(session, status="dropped", kind="rule") == [RULE]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "order", "text": "x"}, "kind"),
        ({"kind": "rule"}, "text"),
        ({"kind": "rule", "text": " "}, "text"),
        ({"kind": "rule", "text": 7}, "text"),
        ({"kind": "rule", "text": "x" * 401}, "text"),
        ({"kind": "rule", "text": "x", "status": "new"}, "status"),
        ({"kind": "rule", "text": "x", "pinned": 1}, "pinned"),
        ({"kind": "rule", "text": "x", "message": 0}, "message"),
        ({"kind": "rule", "text": "x", "seq": 1}, "seq"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(
    api: APIClient, address: str, body: dict[str, Any], field: str
) -> None:
    refusal = api.post(address, body, format="json")
    assert refusal.status_code == 400
    assert field in [error["field"] for error in refusal.json()["errors"]]
    assert not LedgerLine.objects.exists()


def test_a_policy_without_a_ledger_refuses_lines(
    api: APIClient, address: str, session: Session
) -> None:
    Session.objects.filter(pk=session.pk).update(policy="oneclaw")
    refusal = api.post(address, {"kind": "rule", "text": "Be brief."}, format="json")
    assert (refusal.status_code, refusal.json()["errors"][0]["field"]) == (400, "text")


def test_it_belongs_to_its_owner(
    address: str, remembered: LedgerLine, as_user: Callable[[User], APIClient]
) -> None:
    bob = as_user(User.objects.create_user("bob"))
    line = f"{address}/{remembered.pk}"
    assert bob.get(address).status_code == 404
    assert bob.post(address, {"kind": "rule", "text": "x"}, format="json").status_code == 404
    assert bob.patch(line, {"pinned": True}, format="json").status_code == 404
    assert bob.delete(line).status_code == 404
    assert APIClient().get(address).status_code == 401
    remembered.refresh_from_db()
    assert (remembered.pinned, remembered.status) == (False, "current")


def test_a_line_of_another_session_is_not_found(
    api: APIClient, session: Session, remembered: LedgerLine
) -> None:
    other = Session.objects.create(owner=session.owner, model=session.model, policy="chatcore")
    line = f"/api/v1/sessions/{other.pk}/ledger/{remembered.pk}"
    assert api.delete(line).status_code == 404
    assert api.patch(line, {"pinned": True}, format="json").status_code == 404


def test_the_admin_shows_lines_and_changes_none(remembered: LedgerLine, client: Client) -> None:
    client.force_login(User.objects.create_superuser("operator"))
    page = client.get(reverse("admin:memory_ledgerline_change", args=[remembered.pk]))
    assert RULE in page.content.decode()
    assert "<textarea" not in page.content.decode()
    assert RULE in client.get(reverse("admin:memory_ledgerline_changelist")).content.decode()
    assert client.get(reverse("admin:memory_ledgerline_add")).status_code == 403

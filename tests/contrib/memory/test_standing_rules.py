"""A user lets a line hold always: it stands in all of their sessions, under every policy."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from chatcore.models import ContextRevision, Session
from chatcore.sessions import deletion
from chatcore.turns.deletion import delete_message
from compaction.core.presets import PRESETS
from compaction.memory.ledger import rules
from compaction.memory.models import LedgerLine, StandingRule
from tests.support.compaction_sessions import fill_session, list_chat_calls, say
from tests.support.ledger_sessions import (  # noqa: F401
    RULE,
    compact,
    read_next_request,
    session,
)
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def line(session: Session) -> LedgerLine:  # noqa: F811
    """The rule that the user has said in the session."""
    say(session, RULE)
    return LedgerLine.objects.get(session=session, kind="rule")


@pytest.fixture
def other(session: Session) -> Session:  # noqa: F811
    """Another session of the same user, with the same policy."""
    return Session.objects.create(owner=session.owner, model=session.model, policy=session.policy)


def lift(api: APIClient, line: LedgerLine) -> dict[str, Any]:
    lifted = api.post("/api/v1/rules", {"line": line.pk})
    assert lifted.status_code == 201, lifted.json()
    rule: dict[str, Any] = lifted.json()
    return rule


def preview(api: APIClient, session: Session) -> str:  # noqa: F811
    return str(api.get(f"/api/v1/sessions/{session.pk}/context/preview").json())


def test_a_lifted_line_stands_in_another_session_from_its_next_request_on(
    line: LedgerLine, other: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    assert RULE not in read_next_request(other, scripted)
    rule = lift(api, line)
    assert (rule["kind"], rule["text"], rule["line"]) == ("rule", RULE, line.pk)
    assert rule["session"] == str(line.session_id)
    request = read_next_request(other, scripted)
    assert request.count(RULE) == 1
    assert "What was said, word for word" in request


def test_a_new_session_has_it_in_its_first_request_and_preview(
    line: LedgerLine, other: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    lift(api, line)
    assert RULE in preview(api, other)
    assert RULE in read_next_request(other, scripted)


def test_it_survives_a_compaction_and_stands_once(
    line: LedgerLine, other: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    lift(api, line)
    say(other, RULE)
    other.refresh_from_db()
    fill_session(other)
    compact(other)
    assert read_next_request(other, scripted).count(RULE) == 1


def test_what_has_not_changed_makes_no_new_version_of_the_context(
    line: LedgerLine, other: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    lift(api, line)
    for _ in range(3):
        read_next_request(other, scripted)
    assert ContextRevision.objects.filter(session=other).count() == 1


def test_another_user_does_not_get_it(
    line: LedgerLine,
    other: Session,
    api: APIClient,
    scripted: ScriptedModel,
    django_user_model: type[User],
) -> None:
    lift(api, line)
    bob = django_user_model.objects.create_user("bob")
    foreign = Session.objects.create(owner=bob, model=other.model, policy=other.policy)
    assert RULE not in read_next_request(foreign, scripted)
    assert not ContextRevision.objects.filter(session=foreign).exists()


@pytest.mark.parametrize("policy", PRESETS)
def test_it_is_sent_under_every_policy_before_and_after_a_compaction(
    session: Session,  # noqa: F811
    api: APIClient,
    scripted: ScriptedModel,
    policy: str,
) -> None:
    chat = Session.objects.create(owner=session.owner, model=session.model, policy=policy)
    rule = api.post("/api/v1/rules", {"text": RULE}).json()
    assert rule["left_out_of"] == []
    first_request = read_next_request(chat, scripted)
    assert first_request.count(RULE) == 1
    read_next_request(chat, scripted)
    [first_call, second_call] = list_chat_calls(scripted)[-2:]
    prefix = first_call.json["messages"]
    assert second_call.json["messages"][: len(prefix)] == prefix
    chat.refresh_from_db()
    fill_session(chat)
    compact(chat)
    assert read_next_request(chat, scripted).count(RULE) == 1
    assert api.delete(f"/api/v1/rules/{rule['id']}").status_code == 204
    assert RULE not in read_next_request(chat, scripted)


def test_a_temporary_chat_has_it_and_a_rule_names_the_chats_without_it(
    session: Session,  # noqa: F811
    api: APIClient,
    scripted: ScriptedModel,
) -> None:
    short = Session.objects.create(owner=session.owner, model=session.model, temporary=True)
    plain = Session.objects.create(owner=session.owner, model=session.model, title="Plain")
    api.patch(f"/api/v1/sessions/{plain.pk}/rules", {"left_out": True})
    added = api.post("/api/v1/rules", {"text": RULE}).json()
    assert added["left_out_of"] == [str(plain.pk)]
    [listed] = api.get("/api/v1/rules").json()["results"]
    assert listed["left_out_of"] == [str(plain.pk)]
    assert RULE in read_next_request(short, scripted)
    assert RULE not in read_next_request(plain, scripted)


def test_a_fork_under_a_policy_without_a_ledger_forgets_a_rule_that_was_dropped(
    session: Session,  # noqa: F811
    api: APIClient,
    scripted: ScriptedModel,
) -> None:
    chat = Session.objects.create(owner=session.owner, model=session.model)
    rule = api.post("/api/v1/rules", {"text": RULE}).json()
    assert RULE in read_next_request(chat, scripted)
    api.delete(f"/api/v1/rules/{rule['id']}")
    last = chat.messages.order_by("seq").last()
    assert last is not None
    fork = api.post(f"/api/v1/messages/{last.pk}/fork").json()["id"]
    assert RULE not in read_next_request(Session.objects.get(pk=fork), scripted)


def test_it_is_edited_and_dropped_everywhere(
    line: LedgerLine, other: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    address = f"/api/v1/rules/{lift(api, line)['id']}"
    assert RULE in read_next_request(other, scripted)
    edited = api.patch(address, {"text": "Never fly on a Monday."})
    assert edited.json()["text"] == "Never fly on a Monday."
    request = read_next_request(other, scripted)
    assert "Never fly on a Monday." in request
    assert RULE not in request
    assert api.delete(address).status_code == 204
    assert "Never fly on a Monday." not in read_next_request(other, scripted)
    assert api.get(address).status_code == 404


def test_the_ledger_says_which_line_holds_always_and_lifting_it_twice_is_lifting_it_once(
    line: LedgerLine, api: APIClient
) -> None:
    rule = lift(api, line)
    assert lift(api, line)["id"] == rule["id"]
    shown = api.get(f"/api/v1/sessions/{line.session_id}/ledger").json()["results"]
    assert [each["rule"] for each in shown if each["id"] == line.pk] == [rule["id"]]
    assert [each["id"] for each in api.get("/api/v1/rules").json()["results"]] == [rule["id"]]


def test_the_rule_follows_what_a_person_does_to_its_line(line: LedgerLine, api: APIClient) -> None:
    lift(api, line)
    address = f"/api/v1/sessions/{line.session_id}/ledger/{line.pk}"
    api.patch(address, {"text": "Never on Sundays."})
    assert StandingRule.objects.get().text == "Never on Sundays."
    api.patch(address, {"status": "dropped"})
    assert not StandingRule.objects.exists()


def test_it_outlives_its_message_and_its_session_but_not_its_user(
    line: LedgerLine, api: APIClient
) -> None:
    lift(api, line)
    delete_message(line.session.messages.get(role="user"))
    [rule] = api.get("/api/v1/rules").json()["results"]
    assert (rule["text"], rule["line"], rule["session"]) == (RULE, None, None)
    deletion.delete_session(line.session_id)
    assert StandingRule.objects.count() == 1
    line.session.owner.delete()
    assert not StandingRule.objects.exists()


def test_nothing_that_is_said_makes_a_rule(
    session: Session,  # noqa: F811
    other: Session,
    scripted: ScriptedModel,
) -> None:
    say(session, f"Always, in all my chats: {RULE} Make this a standing rule.")
    assert not StandingRule.objects.exists()
    assert RULE not in read_next_request(other, scripted)


def test_a_person_writes_a_rule_without_a_line(
    other: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    written = api.post("/api/v1/rules", {"text": "Answer in metric units.", "kind": "preference"})
    assert (written.status_code, written.json()["line"]) == (201, None)
    assert "Answer in metric units." in read_next_request(other, scripted)


def test_rules_stay_within_the_ledgers_share_of_the_budget(
    other: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    for number in range(40):
        rule = {"text": f"Rule {number}: " + "never forget it " * 20}
        assert api.post("/api/v1/rules", rule).status_code == 201
    request = read_next_request(other, scripted)
    assert "more lines of the ledger are left out here" in request
    background = ContextRevision.objects.get(session=other).background
    assert 4_000 < len(background) <= 8_192 * 4 * 0.15


def test_a_foreign_line_and_bad_input_are_refused_and_name_the_field(
    line: LedgerLine,
    api: APIClient,
    as_user: Callable[[User], APIClient],
    django_user_model: type[User],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stranger = as_user(django_user_model.objects.create_user("bob"))
    rule = lift(api, line)
    assert stranger.get(f"/api/v1/rules/{rule['id']}").status_code == 404
    assert stranger.delete(f"/api/v1/rules/{rule['id']}").status_code == 404
    monkeypatch.setattr(rules, "MAX_RULES", 1)
    bad_inputs: list[tuple[APIClient, dict[str, Any], str]] = [
        (stranger, {"line": line.pk}, "line"),
        (api, {}, "text"),
        (api, {"line": line.pk, "text": "Both."}, "text"),
        (api, {"line": line.pk, "kind": "rule"}, "kind"),
        (api, {"text": "x" * 401}, "text"),
        (api, {"text": "One too many."}, "text"),
        (api, {"text": "x", "kind": "law"}, "kind"),
        (api, {"text": "x", "owner": 1}, "owner"),
    ]
    for client, payload, field in bad_inputs:
        refused = client.post("/api/v1/rules", payload)
        assert refused.status_code == 400, payload
        assert field in str(refused.json()["errors"]), payload


def test_a_chat_does_without_the_rules_and_its_fork_too(
    line: LedgerLine, other: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    lift(api, line)
    assert RULE in read_next_request(other, scripted)
    address = f"/api/v1/sessions/{other.pk}/rules"
    assert api.get(address).json() == {"left_out": False}
    assert api.patch(address, {"left_out": True}).json() == {"left_out": True}
    assert RULE not in read_next_request(other, scripted)
    last = other.messages.order_by("seq").last()
    assert last is not None
    fork = api.post(f"/api/v1/messages/{last.pk}/fork").json()["id"]
    assert RULE not in preview(api, Session.objects.get(pk=fork))
    third = Session.objects.create(owner=other.owner, model=other.model, policy=other.policy)
    assert RULE in read_next_request(third, scripted)
    api.patch(address, {"left_out": False})
    assert RULE in read_next_request(other, scripted)


def test_the_choice_of_a_chat_is_its_owners(
    line: LedgerLine, other: Session, as_user: Callable[[User], APIClient], api: APIClient
) -> None:
    address = f"/api/v1/sessions/{other.pk}/rules"
    stranger = as_user(User.objects.create_user("mallory"))
    assert stranger.patch(address, {"left_out": True}).status_code == 404
    refusal = api.patch(address, {"left_out": "perhaps"})
    assert [error["field"] for error in refusal.json()["errors"]] == ["left_out"]
    assert api.get(address).json() == {"left_out": False}


def test_without_a_rule_a_turn_asks_for_none(
    session: Session,  # noqa: F811
) -> None:
    fill_session(session)
    compact(session)
    with CaptureQueriesContext(connection) as queries:
        say(session)
    tables = ('FROM "compaction_standingrule"', '"compaction_sentrules"')
    assert not [query for query in queries if any(name in query["sql"] for name in tables)]


def test_a_rule_stands_beside_the_reference_text_of_an_import(
    session: Session,  # noqa: F811
    api: APIClient,
) -> None:
    document = api.get(f"/api/v1/sessions/{session.pk}/export").json()
    document["messages"] = [{"role": "user", "content": "Good morning."}]
    document["context"] = {"background": "PLAN: paint the boat."}
    imported = api.post("/api/v1/sessions/import", document)
    assert imported.status_code == 201, imported.json()
    moved = Session.objects.get(pk=imported.json()["id"])
    for text in ("Answer in feet.", "Be brief."):
        api.post("/api/v1/rules", {"kind": "rule", "text": text})
        shown = preview(api, moved)
        assert text in shown
        assert shown.count("PLAN: paint the boat.") == 1

"""Deleting and pinning messages over REST."""

import json
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.models import Message, Session, SessionEvent
from chatcore.search import query as search_query
from chatcore.turns import versions
from compaction.models import FORGOTTEN_TEXT, CompactionRun
from compaction.systems.lota.models import WorkingState
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.stored_talk import CALL, message, sent, sound, summarize, talk

__all__ = ["talk"]

pytestmark = pytest.mark.django_db(transaction=True)  # turns are answered in another thread


def test_a_deleted_message_is_gone_from_everywhere(api: APIClient, talk: Session) -> None:
    summarize(talk, "The password is swordfish.", 3)
    run = CompactionRun.objects.create(
        session=talk,
        trigger="manual",
        policy="oneclaw",
        status="applied",
        boundary_after=3,
        version_after=1,
    )
    assert run.summary_after == "The password is swordfish."
    WorkingState.objects.create(session=talk, memory=["swordfish"])
    pk = message(talk, 1).pk
    SessionEvent.objects.create(
        session=talk,
        seq=9_000,
        name="message.delta",
        message=pk,
        data={"message": pk, "text": "swordfish"},
    )
    Session.objects.filter(pk=talk.pk).update(
        title="The swordfish is the password.", last_event_seq=9_000
    )
    assert api.delete(f"/api/v1/messages/{message(talk, 1).pk}").status_code == 204
    run.refresh_from_db()
    assert run.summary_after == FORGOTTEN_TEXT
    talk.refresh_from_db()
    rows = [
        *talk.revisions.values_list("summary", flat=True),
        talk.title,
        talk.compacted_summary,
    ]
    rows += [json.dumps(data) for data in talk.events.values_list("data", flat=True)]
    rows += [json.dumps(WorkingState.objects.get().memory), sent(talk)]
    assert "swordfish" not in "".join(row or "" for row in rows).replace(CALL["arguments"], "")
    assert search_query.search_messages(talk.pk, "password") == []
    assert talk.message_count == 5
    assert sound(talk) == []


def test_a_title_that_was_made_of_a_deleted_question_is_made_of_the_next(
    api: APIClient, session: Session
) -> None:
    for seq, (role, content) in enumerate(
        [("user", "My secret"), ("assistant", "Yes?"), ("user", "W" * 100)], start=1
    ):
        Message.objects.create(session=session, seq=seq, role=role, content=content)
    Session.objects.filter(pk=session.pk).update(title="My secret", last_seq=3, message_count=3)
    api.delete(f"/api/v1/messages/{message(session, 1).pk}")
    session.refresh_from_db()
    assert session.title == "W" * 60
    api.delete(f"/api/v1/messages/{message(session, 3).pk}")
    session.refresh_from_db()
    assert session.title == ""


def test_an_answer_is_deleted_with_the_results_of_its_calls(api: APIClient, talk: Session) -> None:
    assert api.delete(f"/api/v1/messages/{message(talk, 4).pk}").status_code == 204
    assert list(talk.messages.order_by("seq").values_list("seq", flat=True)) == [1, 2, 3, 6]
    assert sound(talk) == []


def test_the_boundary_moves_on_when_its_message_is_deleted(api: APIClient, talk: Session) -> None:
    summarize(talk, "Small talk.", 3)
    api.delete(f"/api/v1/messages/{message(talk, 3).pk}")
    talk.refresh_from_db()
    assert talk.compact_boundary_seq == 4
    assert talk.compacted_summary == "Small talk."
    assert sound(talk) == []


def test_a_deletion_waits_for_no_one_and_interrupts_no_one(
    api: APIClient, talk: Session, as_user: Callable[[User], APIClient], scripted: ScriptedModel
) -> None:
    other = as_user(User.objects.create_user("bob"))
    for act in (
        other.delete,
        lambda url: other.post(f"{url}/fork"),
        lambda url: other.post(f"{url}/pin", {}),
    ):
        assert act(f"/api/v1/messages/{message(talk, 1).pk}").status_code == 404
    talk.turns.create(status="waiting", lease_until="2020-01-01T00:00Z")
    answer = api.delete(f"/api/v1/messages/{message(talk, 1).pk}")
    assert (answer.status_code, answer.json()["type"]) == (409, "turn_waiting")


def test_a_pin_is_sent_word_for_word_whatever_was_summarized(api: APIClient, talk: Session) -> None:
    summarize(talk, "Small talk.", 6)
    url = f"/api/v1/messages/{message(talk, 1).pk}/pin"
    assert api.post(url, {}).json() == {"id": message(talk, 1).pk, "pinned": True}
    assert "The swordfish is the password." in sent(talk)
    assert api.post(url, {"pinned": False}).json()["pinned"] is False
    assert "The swordfish is the password." not in sent(talk)
    assert api.post(url, {"pinned": "yes"}).status_code == 400


def test_the_tools_of_a_reply_are_forgotten_with_it(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=[make_tool_call("calculate", {"expression": "4711+1"})]),
        Reply(text="4712"),
    )
    answer = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "What is it?"}).json()
    calling = session.messages.exclude(tool_calls=[]).get()
    assert api.delete(f"/api/v1/messages/{calling.pk}").status_code == 204
    assert not any(
        "4711" in json.dumps(data) for data in session.events.values_list("data", flat=True)
    )
    assert answer["assistant_message"]["content"] == "4712"
    assert sound(session) == []


def test_the_turn_of_a_deleted_answer_still_ends_in_a_replay(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["sword", "fish"]))
    api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "What is it?"})
    answer = session.messages.get(role="assistant")
    assert api.delete(f"/api/v1/messages/{answer.pk}").status_code == 204
    names = list(session.events.order_by("seq").values_list("name", flat=True))
    assert [name for name in names if name.startswith("turn.")] == [
        "turn.started",
        "turn.completed",
    ]
    assert "swordfish" not in "".join(
        json.dumps(data) for data in session.events.values_list("data", flat=True)
    )
    assert not any(name.startswith("message.delta") for name in names)


def test_a_call_that_waited_for_the_client_is_forgotten_too(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=[make_tool_call("look", {"at": "swordfish"})]))
    tools = [{"name": "look", "parameters": {}}]
    api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Look.", "tools": tools})
    api.post(f"/api/v1/sessions/{session.pk}/cancel")
    calling = session.messages.exclude(tool_calls=[]).get()
    assert api.delete(f"/api/v1/messages/{calling.pk}").status_code == 204
    assert not any(
        "swordfish" in json.dumps(data) for data in session.events.values_list("data", flat=True)
    )
    assert sound(session) == []


def test_versions_stay_versions_when_one_between_is_deleted(api: APIClient, talk: Session) -> None:
    first = message(talk, 6)
    second = versions.edit_answer(first, "It was there.")
    third = versions.edit_answer(second, "It will be there.")
    assert api.delete(f"/api/v1/messages/{second.pk}").status_code == 204
    assert versions.map_message_versions(talk.pk) == {
        first.pk: [first.pk, third.pk],
        third.pk: [first.pk, third.pk],
    }
    assert sound(talk) == []


def test_the_newest_message_may_be_deleted_at_the_boundary(api: APIClient, talk: Session) -> None:
    summarize(talk, "Small talk.", 6)
    api.delete(f"/api/v1/messages/{message(talk, 6).pk}")
    assert sound(talk) == []
    assert "Small talk." in sent(talk)
    again = api.post(
        "/api/v1/sessions/import", api.get(f"/api/v1/sessions/{talk.pk}/export").json()
    )
    assert again.status_code == 201, again.json()
    assert sound(Session.objects.get(pk=again.json()["id"])) == []

"""Versions of a conversation: answers regenerated, messages edited, earlier versions restored."""

import base64
import json
from typing import Any

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from chatcore.events import log as event_log
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.turns import control
from models_registry.models import AiModel
from tests.support.compaction_sessions import fill_session, list_chat_calls, summarize_or_chat
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.soundness import sound
from tests.support.version_requests import (
    edit,
    list_messages,
    list_texts,
    read_sent_texts,
    regenerate,
    restore,
    say,
)

__all__ = ["sound"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_another_answer_takes_the_place_of_the_first(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first = say(api, session, scripted, ("Tea?", "No."))
    scripted.script(Reply(text="Yes."))
    answer = regenerate(api, first)
    assert answer.status_code == 201
    body = answer.json()
    new = body["assistant_message"]
    assert (body["user_message"]["content"], new["content"], new["replaces"]) == (
        "Tea?",
        "Yes.",
        first.pk,
    )
    assert new["versions"] == [first.pk, new["id"]]
    assert list_texts(api, session) == ["Tea?", "Yes."]
    assert read_sent_texts(scripted) == ["Tea?"]
    assert api.get(f"/api/v1/sessions/{session.pk}").json()["message_count"] == 2


def test_what_was_superseded_is_kept_and_shown_when_asked_for(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first, *_ = say(api, session, scripted, ("Tea?", "No."), ("Why?", "There is none."))
    scripted.script(Reply(text="Yes."))
    regenerate(api, first)
    rows = list_messages(api, session, "?superseded=true")
    assert [(row["content"], row["superseded"]) for row in rows] == [
        ("Tea?", False),
        ("No.", True),
        ("Why?", True),
        ("There is none.", True),
        ("Yes.", False),
    ]
    assert [len(row["versions"]) for row in rows] == [0, 2, 0, 0, 2]
    assert [row["superseded"] for row in list_messages(api, session)] == [False, False]


def test_a_message_without_versions_lists_none(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    say(api, session, scripted, ("Tea?", "No."))
    assert [
        (row["replaces"], row["versions"], row["superseded"]) for row in list_messages(api, session)
    ] == [(None, [], False)] * 2


def test_an_edited_message_is_answered_anew(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    first, *_ = say(api, session, scripted, ("Tea?", "No."), ("Why?", "There is none."))
    scripted.script(Reply(text="Here it is."))
    body = edit(api, first, "Coffee?").json()
    assert (body["user_message"]["replaces"], body["user_message"]["versions"]) == (
        first.pk,
        [first.pk, body["user_message"]["id"]],
    )
    assert body["assistant_message"]["replaces"] is None
    assert list_texts(api, session) == ["Coffee?", "Here it is."]
    assert read_sent_texts(scripted) == ["Coffee?"]


def test_an_edited_answer_is_not_answered(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first, *_ = say(api, session, scripted, ("Tea?", "No."), ("Why?", "There is none."))
    calls = len(scripted.requests)
    edited = edit(api, first, "Yes, black.")
    assert (edited.status_code, edited.json()["content"], edited.json()["replaces"]) == (
        200,
        "Yes, black.",
        first.pk,
    )
    assert len(scripted.requests) == calls
    told = [event.name for event in event_log.read_events(session.pk, 0)][-3:]
    assert told == ["session.updated", "message.created", "message.completed"]
    say(api, session, scripted, ("With milk?", "Yes."))
    assert read_sent_texts(scripted) == ["Tea?", "Yes, black.", "With milk?"]
    first.refresh_from_db()
    assert first.content == "No."


def test_an_answer_that_used_tools_is_given_anew_from_its_question_on(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=(make_tool_call("calculate", {"expression": "6*7"}),)), Reply(text="42.")
    )
    api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "6*7?"})
    old = session.messages.get(content="42.")
    scripted.script(
        Reply(tool_calls=(make_tool_call("calculate", {"expression": "7*6"}),)),
        Reply(text="It is 42."),
    )
    new = regenerate(api, old).json()
    assert [row["role"] for row in list_messages(api, session)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert new["assistant_message"]["replaces"] == old.pk
    assert session.messages.exclude(tool_calls=[]).filter(replaces__isnull=False).count() == 0


def test_a_question_without_an_answer_is_answered_when_it_is_regenerated(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(status=401))
    failed = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Tea?"})
    scripted.script(Reply(text="Yes."))
    body = regenerate(api, Message.objects.get(pk=failed.json()["user_message"])).json()
    assert (body["assistant_message"]["content"], body["assistant_message"]["replaces"]) == (
        "Yes.",
        None,
    )
    assert list_texts(api, session) == ["Tea?", "Yes."]


def test_a_third_answer_belongs_to_the_same_place(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first = say(api, session, scripted, ("Tea?", "One."))
    scripted.script(Reply(text="Two."), Reply(text="Three."))
    second = regenerate(api, first).json()["assistant_message"]["id"]
    third = regenerate(api, Message.objects.get(pk=second)).json()["assistant_message"]["id"]
    places = {
        row["id"]: row["versions"]
        for row in list_messages(api, session, "?superseded=true")
        if row["role"] == "assistant"
    }
    assert places == {version: [first.pk, second, third] for version in (first.pk, second, third)}


def test_a_restored_version_comes_back_with_what_followed_it(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first, *_ = say(api, session, scripted, ("Tea?", "No."), ("Why?", "There is none."))
    scripted.script(Reply(text="Yes."))
    second = Message.objects.get(pk=regenerate(api, first).json()["assistant_message"]["id"])
    say(api, session, scripted, ("Black?", "Green."))
    assert restore(api, first).json()["superseded"] is False
    assert list_texts(api, session) == ["Tea?", "No.", "Why?", "There is none."]
    say(api, session, scripted, ("Buy some.", "I will."))
    assert read_sent_texts(scripted) == ["Tea?", "No.", "Why?", "There is none.", "Buy some."]
    restore(api, second)
    assert list_texts(api, session) == ["Tea?", "Yes.", "Black?", "Green."]
    restore(api, first)
    assert list_texts(api, session) == [
        "Tea?",
        "No.",
        "Why?",
        "There is none.",
        "Buy some.",
        "I will.",
    ]
    assert api.get(f"/api/v1/sessions/{session.pk}").json()["message_count"] == 6


def test_a_version_inside_another_version_comes_back_with_what_it_stands_on(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first, _, inner = say(api, session, scripted, ("Tea?", "No."), ("Why?", "There is none."))
    scripted.script(Reply(text="Guess."), Reply(text="Yes."))
    regenerate(api, inner)
    regenerate(api, first)
    assert list_texts(api, session) == ["Tea?", "Yes."]
    restore(api, inner)
    assert list_texts(api, session) == ["Tea?", "No.", "Why?", "There is none."]
    restore(api, session.messages.get(content="Yes."))
    assert list_texts(api, session) == ["Tea?", "Yes."]
    restore(api, session.messages.get(content="Guess."))
    assert list_texts(api, session) == ["Tea?", "No.", "Why?", "Guess."]


def test_an_answer_given_anew_after_a_restored_one_leaves_the_others_apart(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first = say(api, session, scripted, ("Tea?", "One."))
    scripted.script(Reply(text="Two."))
    regenerate(api, first)
    _, _, _, _, inner = say(api, session, scripted, ("Why?", "So."))
    scripted.script(Reply(text="Thus."))
    regenerate(api, inner)
    restore(api, first)
    scripted.script(Reply(text="Three."))
    regenerate(api, first)
    assert list_texts(api, session) == ["Tea?", "Three."]
    restore(api, inner)
    assert list_texts(api, session) == ["Tea?", "Two.", "Why?", "So."]


def test_a_current_message_need_not_be_restored(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first = say(api, session, scripted, ("Tea?", "No."))
    assert restore(api, first).status_code == 200
    assert list_texts(api, session) == ["Tea?", "No."]


def test_a_failed_second_answer_can_be_taken_back(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first = say(api, session, scripted, ("Tea?", "No."))
    scripted.script(Reply(status=401))
    failed = regenerate(api, first)
    assert (failed.status_code, failed.json()["type"]) == (502, "provider_auth")
    assert list_texts(api, session) == ["Tea?"]
    restore(api, first)
    assert list_texts(api, session) == ["Tea?", "No."]


def test_an_edit_keeps_the_files_that_it_names_or_all(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    given = [
        {"name": f"{word}.txt", "data": base64.b64encode(word.encode()).decode()}
        for word in ("one", "two")
    ]
    said = api.post(
        f"/api/v1/sessions/{session.pk}/messages", {"content": "Read.", "attachments": given}
    ).json()["user_message"]
    all_of_them = edit(api, session.messages.get(pk=said["id"]), "Read both.").json()[
        "user_message"
    ]
    assert [file["name"] for file in all_of_them["attachments"]] == ["one.txt", "two.txt"]
    named = {"content": "Read two.", "attachments": [all_of_them["attachments"][1]["id"]]}
    one = api.patch(f"/api/v1/messages/{all_of_them['id']}", named).json()["user_message"]
    assert [file["name"] for file in one["attachments"]] == ["two.txt"]
    none = api.patch(
        f"/api/v1/messages/{one['id']}", {"content": "Read nothing.", "attachments": []}
    ).json()["user_message"]
    assert none["attachments"] == []
    assert "one.txt" not in json.dumps(scripted.requests[-1].json)


def test_the_same_key_gives_the_same_second_answer(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    first, answer = say(api, session, scripted, ("Tea?", "No."))
    scripted.script(Reply(text="Yes."))
    key = {"Idempotency-Key": "k1"}
    once, twice = (
        api.post(f"/api/v1/messages/{answer.pk}/regenerate", {}, headers=key) for _ in range(2)
    )
    assert (once.status_code, once.json()) == (201, twice.json())
    assert edit(api, first, "Coffee?", **key).status_code == 422
    assert Turn.objects.count() == 2


def test_it_can_be_followed_like_any_turn(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first = say(api, session, scripted, ("Tea?", "No."))
    scripted.script(Reply(text="Yes."))
    taken = api.post(
        f"/api/v1/messages/{first.pk}/regenerate", {}, headers={"Prefer": "respond-async"}
    )
    assert taken.status_code == 202
    assert f"/api/v1/sessions/{session.pk}/events?after=" in taken.json()["events"]
    turn = control.wait_for_turn(taken.json()["turn"], 10)
    assert turn.status == "completed"
    told = SessionEvent.objects.filter(session=session, seq__gte=turn.first_event_seq).order_by(
        "seq"
    )
    created = next(event.data for event in told if event.name == "message.created")
    assert (created["role"], created["replaces"]) == ("assistant", first.pk)


def test_another_model_may_answer_once_and_its_window_counts(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    assert session.model
    big = AiModel.objects.create(
        provider=session.model.provider,
        name="big",
        context_window_size=200_000,
        supports_tools=True,
    )
    Session.objects.update(model=big)
    fill_session(session, messages=30)
    scripted.default = summarize_or_chat(chat=Reply(text="Small, but mine."))
    answer = regenerate(api, session.messages.get(seq=30), {"model": "test-model"}).json()[
        "assistant_message"
    ]
    assert (answer["model"], answer["content"]) == ("scripted/test-model", "Small, but mine.")
    assert api.get(f"/api/v1/sessions/{session.pk}").json()["model"] == "scripted/big"
    asked = list_chat_calls(scripted)[-1].json
    assert asked["model"] == "test-model"
    assert len(json.dumps(asked["messages"])) < 8192 * 4
    refused = regenerate(api, session.messages.get(pk=answer["id"]), {"model": "unknown"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "model")


def test_the_page_shows_what_is_current(
    client: Any, user: Any, api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first = say(api, session, scripted, ("Tea?", "Perhaps not."))
    scripted.script(Reply(text="Certainly."))
    regenerate(api, first)
    client.force_login(user)
    page = client.get(reverse("chat", args=[session.pk])).content.decode()
    assert "Certainly." in page
    assert "Perhaps not." not in page

"""Requests for another version of a message that are refused."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from chatcore.turns import control
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.soundness import sound
from tests.support.version_requests import edit, list_texts, regenerate, restore, say

__all__ = ["sound"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_two_at_once_one_is_refused(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    _, first = say(api, session, scripted, ("Tea?", "No."))
    scripted.default = Reply(text="Yes.", delay=0.3)

    def ask(_: int) -> int:
        try:
            return int(regenerate(api, first).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(ask, range(2))) == [201, 409]
    assert list_texts(api, session) == ["Tea?", "Yes."]


@pytest.mark.parametrize(
    "act", [regenerate, lambda api, message: edit(api, message, "Other"), restore]
)
def test_nothing_is_changed_while_an_answer_is_given(
    api: APIClient, session: Session, scripted: ScriptedModel, act: Any
) -> None:
    say(api, session, scripted, ("Tea?", "No."))
    scripted.script(Reply(text="slow", delay=20))
    turn = control.start_turn(session, content="Why?")
    for message in session.messages.all():
        refused = act(api, message)
        assert (refused.status_code, refused.json()["type"], refused.json()["turn"]) == (
            409,
            "turn_running",
            str(turn.pk),
        )
    control.cancel_turn(session.pk)
    control.wait_for_turn(turn.pk, 10)


def test_what_is_superseded_is_neither_edited_nor_answered(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    first, answer = say(api, session, scripted, ("Tea?", "No."))
    scripted.script(Reply(text="Yes."))
    edit(api, first, "Coffee?")
    for refused in (
        regenerate(api, answer),
        edit(api, first, "Milk?"),
        edit(api, answer, "Perhaps."),
    ):
        assert (refused.status_code, refused.json()["type"]) == (409, "superseded")


def test_tool_results_and_notes_are_neither_edited_nor_answered(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=(make_tool_call("calculate", {"expression": "6*7"}),)), Reply(text="42.")
    )
    api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "6*7?"})
    result = session.messages.get(role="tool")
    for refused in (regenerate(api, result), edit(api, result, "43")):
        assert refused.status_code == 400
        assert refused.json()["errors"][0]["field"] == "role"


def test_an_answer_that_nobody_asked_for_is_not_given_anew(
    api: APIClient, session: Session
) -> None:
    api.post(
        f"/api/v1/sessions/{session.pk}/messages/import",
        {"messages": [{"role": "assistant", "content": "Welcome."}]},
    )
    refused = regenerate(api, session.messages.get())
    assert (refused.status_code, refused.json()["type"]) == (409, "nothing_to_answer")


def test_another_users_message_does_not_exist(
    as_user: Any, django_user_model: Any, session: Session, scripted: ScriptedModel
) -> None:
    mine = Message.objects.create(session=session, seq=1, role="user", content="Mine")
    Session.objects.update(message_count=1, last_seq=1)
    bob = as_user(django_user_model.objects.create_user("bob"))
    assert [
        act.status_code
        for act in (regenerate(bob, mine), edit(bob, mine, "Ours"), restore(bob, mine))
    ] == [404, 404, 404]


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "content"), ({"content": " \n"}, "content"), ({"content": "a", "role": "x"}, "role")],
)
def test_a_wrong_edit_is_refused_by_the_name_of_its_field(
    api: APIClient, session: Session, scripted: ScriptedModel, body: Any, field: str
) -> None:
    first, _ = say(api, session, scripted, ("Tea?", "No."))
    refused = api.patch(f"/api/v1/messages/{first.pk}", body)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, field)


def test_an_answer_has_no_files(api: APIClient, session: Session, scripted: ScriptedModel) -> None:
    _, answer = say(api, session, scripted, ("Tea?", "No."))
    refused = api.patch(f"/api/v1/messages/{answer.pk}", {"content": "Yes.", "attachments": []})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "attachments")

"""Histories that go out and come in over REST, in our own form and in other systems' formats."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from tests.support.attachment_requests import say, upload
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.stored_talk import CALL, message, sent, sound, summarize, talk

__all__ = ["talk"]

pytestmark = pytest.mark.django_db(transaction=True)  # turns are answered in another thread


def spoken(session: Session) -> list[tuple[Any, ...]]:
    return list(
        session.messages.order_by("seq").values_list(
            "role", "content", "tool_calls", "tool_call_id"
        )
    )


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_history_goes_out_and_comes_back_in_another_systems_form(
    api: APIClient, talk: Session, format: str
) -> None:
    out = api.get(f"/api/v1/sessions/{talk.pk}/export", {"format": format}).json()
    copy = api.post("/api/v1/sessions", {}).json()["id"]
    back = api.post(
        f"/api/v1/sessions/{copy}/messages/import", {"messages": out["messages"], "format": format}
    )
    assert back.status_code == 201, back.json()
    made = Session.objects.get(pk=copy)
    assert spoken(made) == spoken(talk)


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_the_other_forms_have_the_texts_of_files(
    api: APIClient, session: Session, format: str
) -> None:
    files = [upload(api, session, b"Depth: 12 m", "lake.txt").json()["id"]]
    files.append(upload(api, session, build_png(2, 2), "lake.png").json()["id"])
    say(api, session, files, "How deep?")
    out = api.get(f"/api/v1/sessions/{session.pk}/export", {"format": format}).json()
    question = str(out["messages"][0]["content"])
    assert "How deep?" in question
    assert "Depth: 12 m" in question
    assert "lake.png" in question


def test_the_other_forms_are_what_the_other_apis_take(api: APIClient, talk: Session) -> None:
    Session.objects.filter(pk=talk.pk).update(system_prompt="Be brief.")
    openai = api.get(f"/api/v1/sessions/{talk.pk}/export?format=openai").json()["messages"]
    assert openai[0] == {"role": "system", "content": "Be brief."}
    assert openai[4]["tool_calls"] == [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "look", "arguments": CALL["arguments"]},
        }
    ]
    anthropic = api.get(f"/api/v1/sessions/{talk.pk}/export?format=anthropic").json()
    assert anthropic["system"] == "Be brief."
    assert [each["role"] for each in anthropic["messages"]] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert anthropic["messages"][4]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "Found.", "is_error": False}
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": [], "format": "xml"}, "format"),
        ({"messages": [{"role": "user", "content": 5}], "format": "openai"}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image"}]}], "format": "anthropic"},
            "messages[0].content[0].type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"image_url": {}}]}], "format": "openai"},
            "messages[0].content[0]",
        ),
        ({"messages": [7], "format": "openai"}, "messages[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": 1}], "format": "openai"},
            "messages[0].tool_calls",
        ),
    ],
)
def test_a_history_that_cannot_be_read_is_refused_by_its_place(
    api: APIClient, session: Session, body: dict[str, Any], field: str
) -> None:
    answer = api.post(f"/api/v1/sessions/{session.pk}/messages/import", body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, field)
    assert session.messages.count() == 0


def test_a_whole_session_goes_out_and_in_with_versions_files_and_summary(
    api: APIClient, talk: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Another answer."))
    api.post(f"/api/v1/messages/{message(talk, 6).pk}/regenerate", {})
    summarize(
        talk,
        "Small talk.",
        4,
        kept_seqs=[1],
        background="Known.",
        placement={"place": "first_user", "after_seq": 7},
    )
    out = api.get(f"/api/v1/sessions/{talk.pk}/export").json()
    answer = api.post("/api/v1/sessions/import", out)
    assert answer.status_code == 201, answer.json()
    made = Session.objects.get(pk=answer.json()["id"])
    assert sent(made) == sent(talk)
    assert made.message_count == Session.objects.get(pk=talk.pk).message_count
    assert (
        made.messages.exclude(branch=None).count() == talk.messages.exclude(branch=None).count() > 0
    )
    assert sound(made) == []


def test_what_is_exported_for_others_has_a_result_for_every_call(
    api: APIClient, talk: Session
) -> None:
    message(talk, 5).delete()
    openai = api.get(f"/api/v1/sessions/{talk.pk}/export?format=openai").json()["messages"]
    assert [said["role"] for said in openai] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    anthropic = api.get(f"/api/v1/sessions/{talk.pk}/export?format=anthropic").json()["messages"]
    assert anthropic[4]["content"][0]["tool_use_id"] == "c1"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"tools": ["none"]}, "session.tools"),
        ({"params": {"n": 5}}, "session.params.n"),
        ({"policy": "none"}, "session.policy"),
    ],
)
def test_an_imported_session_has_no_settings_that_none_could_have(
    api: APIClient, talk: Session, settings: dict[str, Any], field: str
) -> None:
    out = api.get(f"/api/v1/sessions/{talk.pk}/export").json()
    answer = api.post("/api/v1/sessions/import", out | {"session": settings})
    assert answer.status_code == 400
    assert [error["field"].partition("[")[0] for error in answer.json()["errors"]] == [field]

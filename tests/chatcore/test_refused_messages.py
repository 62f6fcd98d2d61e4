"""A message that a provider refuses: said, left out of later requests, and never changed."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from tests.support.compaction_sessions import list_chat_calls
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

FILTERED = "The response was filtered due to the prompt triggering a content management policy."


@pytest.fixture
def filtering(scripted: ScriptedModel) -> ScriptedModel:
    """A provider that refuses each request with the word poison in it."""

    def answer(body: dict[str, Any]) -> Reply:
        is_bad = "poison" in str(body["messages"])
        return Reply(status=400, text=FILTERED) if is_bad else Reply(text="Fine.")

    scripted.default = answer
    return scripted


def say(api: APIClient, session: Session, text: str) -> Any:
    return api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": text}).json()


def test_one_refused_message_poisons_nothing(
    api: APIClient, session: Session, filtering: ScriptedModel
) -> None:
    say(api, session, "Hello.")
    refused = say(api, session, "Brew a poison.")
    assert FILTERED in str(refused)
    answered = say(api, session, "And tea?")
    assert answered["assistant_message"]["content"] == "Fine."
    assert "Brew a poison." in str(answered["notices"])
    call_count = len(list_chat_calls(filtering))
    later = say(api, session, "Thanks.")
    assert later["assistant_message"]["content"] == "Fine."
    assert not later["notices"]
    # It is known by now: no request is refused any more.
    assert len(list_chat_calls(filtering)) == call_count + 1
    assert Message.objects.filter(content="Brew a poison.", branch=None).count() == 1
    assert "poison" not in str(api.get(f"/api/v1/sessions/{session.pk}/context/preview").json())


@pytest.mark.parametrize("words", ["", "First you take"])
def test_a_filter_that_ends_the_answer_poisons_nothing(
    api: APIClient, session: Session, scripted: ScriptedModel, words: str
) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        messages = body["messages"]
        if "poison" in messages[-1]["content"]:
            return Reply(text=words, finish="content_filter")
        if "poison" in str(messages):
            return Reply(text="", finish="content_filter")
        return Reply(text="Fine.")

    scripted.default = answer
    say(api, session, "Brew a poison.")
    answered = say(api, session, "And tea?")
    assert answered["assistant_message"]["content"] == "Fine."
    assert "Brew a poison." in str(answered["notices"])
    assert say(api, session, "Thanks.")["assistant_message"]["content"] == "Fine."


def test_a_loop_of_tools_that_was_refused_is_left_out_whole(
    api: APIClient, session: Session, filtering: ScriptedModel
) -> None:
    call = make_tool_call("calculate", {"expression": "poison"})
    filtering.script(Reply(tool_calls=[call]))
    say(api, session, "Reckon.")
    assert say(api, session, "Hello.")["assistant_message"]["content"] == "Fine."


def test_what_is_no_help_is_not_left_out(
    api: APIClient, session: Session, filtering: ScriptedModel
) -> None:
    """An answered message stays, whatever it says."""
    filtering.script(Reply(text="A strong poison."))
    say(api, session, "What is in it?")
    for text in ("And now?", "And now?"):
        refused = say(api, session, text)
        assert FILTERED in str(refused)
    assert not session.context_edits.exists()


def test_a_message_that_failed_for_another_reason_stays(
    api: APIClient, session: Session, filtering: ScriptedModel
) -> None:
    filtering.script(*[Reply(status=500)] * 5)
    say(api, session, "My name is Alice.")
    filtering._replies.clear()
    say(api, session, "Brew a poison.")
    say(api, session, "Who am I?")
    assert "My name is Alice." in str(list_chat_calls(filtering)[-1].json["messages"])


def test_a_tool_that_is_refused_is_named_and_the_chat_goes_on(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        is_bad = "calculate" in str(body.get("tools"))
        refusal = "Invalid schema for function 'calculate'"
        return Reply(status=400, text=refusal) if is_bad else Reply(text="Fine.")

    scripted.default = answer
    answered = say(api, session, "Hello.")
    assert answered["assistant_message"]["content"] == "Fine."
    assert "calculate" in str(answered["notices"])

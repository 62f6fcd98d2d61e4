"""Chains of responses: `previous_response_id`, branches, and histories that come back whole."""

from typing import Any

import openai
import pytest
from django.contrib.auth.models import User
from openai import OpenAI

from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session
from chatcore.sessions import verification
from tests.conftest import Live
from tests.support.open_responses import MODEL, check_response
from tests.support.openai_client import client, create_client, list_completions
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def verify_sessions(client: OpenAI) -> Any:
    yield
    turn_runner.drain()
    for session in Session.objects.all():
        assert list(verification.find_violations(session)) == []


def ask(client: OpenAI, text: str, previous: Any = None, **other: Any) -> Any:
    return client.responses.create(
        model=MODEL, input=text, previous_response_id=previous.id if previous else None, **other
    )


def load_texts() -> list[str]:
    return list(
        Message.objects.filter(branch=None).order_by("seq").values_list("content", flat=True)
    )


def load_sent_texts(scripted: ScriptedModel) -> list[str]:
    return [message["content"] for message in list_completions(scripted)[-1].json["messages"]]


def test_a_chain_is_one_session(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="a1"), Reply(text="a2"))
    first = ask(client, "q1", instructions="Be brief.")
    second = ask(client, "q2", first)
    assert load_sent_texts(scripted) == ["q1", "a1", "q2"]  # instructions are not carried over
    assert (second.previous_response_id, Session.objects.count()) == (first.id, 1)


def test_system_items_are_carried_over(client: OpenAI, scripted: ScriptedModel) -> None:
    items: Any = [
        {"role": "developer", "content": "Speak as a pirate."},
        {"role": "user", "content": "q1"},
    ]
    first = client.responses.create(model=MODEL, input=items)
    ask(client, "q2", first)
    assert load_sent_texts(scripted)[0] == "Speak as a pirate."


def test_a_branch_from_an_older_response_is_a_version(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(*(Reply(text=text) for text in ("a1", "a2", "b2", "a3", "b3")))
    first = ask(client, "q1")
    left = ask(client, "left", first)
    right = ask(client, "right", first)
    assert load_texts() == ["q1", "a1", "right", "b2"]
    ask(client, "left again", left)
    assert load_sent_texts(scripted) == ["q1", "a1", "left", "a2", "left again"]
    ask(client, "right again", right)
    assert load_texts() == ["q1", "a1", "right", "b2", "right again", "b3"]
    assert Session.objects.count() == 1
    check_response(client.responses.with_raw_response.retrieve(left.id).http_response.json())


def test_a_branch_while_another_is_answered_is_a_fork(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="a1"), Reply(hang=True), Reply(text="b2"))
    first = ask(client, "q1")
    slow = ask(client, "slow", first, background=True)
    assert ask(client, "quick", first).output_text == "b2"
    source, fork = Session.objects.order_by("created_at")
    assert (fork.forked_from, fork.forked_from_seq) == (source, 2)
    assert client.responses.cancel(slow.id).status == "cancelled"


@pytest.mark.parametrize("id", ["resp_" + "0" * 32, "resp_unknown", "nonsense"])
def test_an_unknown_previous_response_is_404(client: OpenAI, id: str) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model=MODEL, input="Hi", previous_response_id=id)
    assert caught.value.code == "previous_response_not_found"


def test_a_response_of_another_user_does_not_exist(client: OpenAI, live: Live) -> None:
    first = ask(client, "q1")
    other_client = create_client(live.url, User.objects.create_user("bob"))
    for attempt in (
        lambda: ask(other_client, "q2", first),
        lambda: other_client.responses.retrieve(first.id),
        lambda: other_client.responses.delete(first.id),
        lambda: other_client.responses.input_items.list(first.id),
        lambda: other_client.responses.create(
            model=MODEL, input=[{"type": "item_reference", "id": first.output[0].id}]
        ),
    ):
        with pytest.raises(openai.NotFoundError):
            attempt()


def test_a_whole_history_stays_in_one_session(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.default = lambda request: Reply(text=f"answer {len(request['messages'])}")
    items: list[Any] = []
    for number in range(4):
        items.append({"role": "user", "content": f"question {number}"})
        response = client.responses.create(model=MODEL, input=items)
        items.append({"role": "assistant", "content": response.output_text})
    assert Session.objects.count() == 1
    assert Message.objects.count() == 8


@pytest.mark.parametrize("tag", ["system-reminder", "context-note"])
def test_blocks_that_a_program_takes_away_again_do_not_count(
    client: OpenAI, scripted: ScriptedModel, tag: str
) -> None:
    scripted.default = lambda request: Reply(text=f"answer {len(request['messages'])}")
    history: list[Any] = []
    for number in range(3):
        question = f"question {number}"
        noted = f"{question}\n<{tag}>\n12:0{number}\n</{tag}>"
        asked = [*history, {"role": "user", "content": noted}]
        response = client.responses.create(model=MODEL, input=asked)
        history.append({"role": "user", "content": question})
        history.append({"role": "assistant", "content": response.output_text})
    assert Session.objects.count() == 1


def test_an_edited_history_is_a_version_of_the_stored_one(client: OpenAI) -> None:
    history: list[Any] = []
    for text in ("q1", "q2"):
        history.append({"role": "user", "content": text})
        response = client.responses.create(model=MODEL, input=history)
        history.append({"role": "assistant", "content": response.output_text})
    edited = [*history[:2], {"role": "user", "content": "another question"}]
    client.responses.create(model=MODEL, input=edited)
    assert Session.objects.count() == 1
    assert load_texts()[2] == "another question"


def test_a_foreign_history_begins_a_session_of_its_own(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    items: Any = [
        {"role": "user", "content": "My name is Alice."},
        {"role": "assistant", "phase": "commentary", "content": "Hello Alice!"},
        {"role": "assistant", "phase": "final_answer", "content": "How can I help?"},
        {"role": "user", "content": "What is my name?"},
    ]
    client.responses.create(model=MODEL, input=items)
    assert load_sent_texts(scripted) == [
        "My name is Alice.",
        "Hello Alice!\n\nHow can I help?",
        "What is my name?",
    ]


def test_references_to_items_are_resolved(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="a1"), Reply(text="a2"))
    first = ask(client, "q1")
    items: Any = [
        {"role": "user", "content": "q1"},
        {"type": "item_reference", "id": first.output[0].id},
        {"role": "user", "content": "q2"},
    ]
    client.responses.create(model=MODEL, input=items)
    assert load_sent_texts(scripted) == ["q1", "a1", "q2"]
    assert Session.objects.count() == 1


def test_a_client_may_name_the_session_in_a_header(client: OpenAI, scripted: ScriptedModel) -> None:
    headers = {"X-Session-Id": "trip"}
    for text in ("q1", "q2"):
        ask(client, text, extra_headers=headers)
    assert Session.objects.get().external_id == "trip"
    assert load_sent_texts(scripted)[::2] == ["q1", "q2"]


def test_a_named_session_is_kept_although_its_client_asks_for_no_storage(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    history: Any = []
    for number in (1, 2):
        history.append({"role": "user", "content": f"q{number}"})
        scripted.script(Reply(text=f"a{number}"))
        response = client.responses.create(
            model=MODEL, input=history, store=False, extra_headers={"X-Session-Id": "trip"}
        )
        assert response.to_dict()["store"] is True
        history += [item.model_dump() for item in response.output]
    session = Session.objects.get(external_id="trip")
    texts = Message.objects.filter(session=session).order_by("seq")
    assert list(texts.values_list("content", flat=True)) == ["q1", "a1", "q2", "a2"]


def test_a_token_continues_no_history_of_another_one(
    live: Live, user: User, client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="a1"))
    ask(client, "q1")
    history: Any = [
        {"role": "user", "content": "q1"},
        {"role": "assistant", "content": "a1"},
        {"role": "user", "content": "q2"},
    ]
    other_client = create_client(live.url, user)
    other_client.responses.create(model=MODEL, input=history)
    assert Session.objects.count() == 2
    client.responses.create(model=MODEL, input=history)
    assert Session.objects.count() == 2

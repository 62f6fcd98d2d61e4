"""A client that closes its connection stops the answer, and the session goes on."""

import contextlib

import httpx2
import pytest
from django.contrib.auth.models import User
from openai import OpenAI

from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session, Turn
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.openai_client import MODEL, create_key
from tests.support.remembered_completions import (
    ask,
    build_history,
    client,
    load_messages,
    user_says,
    verify_session,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import PATIENCE_SECONDS, wait_until

__all__ = ["client", "verify_session"]

pytestmark = pytest.mark.django_db(transaction=True)
# It would go on for a minute, but for the client that leaves.
ENDLESS = Reply(chunks=["One ", *(f"{number} " for number in range(2, 300))], chunk_delay=0.2)


def start_and_leave(client: OpenAI, history: list[object]) -> str:
    """Ask for a stream, take a few words and close the connection. Return the words."""
    words = ""
    with ask(client, history, stream=True) as stream:
        for chunk in stream:
            words += chunk.choices[0].delta.content or ""
            if len(words) > 4:
                break
    return words


def test_a_closed_stream_stops_the_answer_and_keeps_its_words(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(ENDLESS)
    words = start_and_leave(client, build_history("Count."))
    wait_until(lambda: Turn.objects.get().status == Turn.Status.CANCELLED)
    answer = Message.objects.get(role="assistant")
    assert answer.status == Message.Status.INTERRUPTED
    assert answer.content.startswith(words)


def test_the_next_question_with_the_words_so_far_is_answered_at_once(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(ENDLESS, Reply(text="Stopped."))
    words = start_and_leave(client, build_history("Count."))
    patient = client.with_options(max_retries=3)
    answer = ask(patient, build_history("Count.", words, "Why did you stop?"))
    assert answer.choices[0].message.content == "Stopped."
    assert [role for role, _ in load_messages()] == ["user", "assistant", "user", "assistant"]
    assert Session.objects.count() == 1


def test_a_client_that_gives_up_waiting_stops_the_answer_too(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(ENDLESS)
    key = create_key(user)
    with contextlib.suppress(httpx2.TimeoutException):
        httpx2.post(
            f"{live.url}/v1/chat/completions",
            headers={"Authorization": f"Bearer {key}", "X-Session-Id": "trip"},
            json={"model": MODEL, "messages": user_says("Count.")},
            timeout=2,
        )
    wait_until(lambda: Turn.objects.get().status == Turn.Status.CANCELLED)


def test_a_turn_of_the_rest_api_goes_on_without_its_client(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    session = Session.objects.create(owner=user, model=model)
    scripted.script(Reply(chunks=["One ", "two ", "three."], chunk_delay=0.3))
    headers = {"Authorization": f"Bearer {create_key(user)}"}
    url = f"{live.url}/api/v1/sessions/{session.pk}/messages"
    body = {"content": "Count.", "stream": True}
    with httpx2.stream(
        "POST", url, headers=headers, json=body, timeout=PATIENCE_SECONDS
    ) as response:
        next(response.iter_lines())
    turn_runner.drain(30)
    assert load_messages() == [("user", "Count."), ("assistant", "One two three.")]


def test_an_answer_that_was_read_to_its_end_is_complete(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["One ", "two."]))
    with ask(client, build_history("Count."), stream=True) as stream:
        for _ in stream:
            pass
    wait_until(lambda: Turn.objects.get().status == Turn.Status.COMPLETED)
    assert Message.objects.get(role="assistant").status == Message.Status.COMPLETE

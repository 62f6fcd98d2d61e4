"""Threads of `/v1/messages`: the server holds a conversation, the client sends what is new."""

import json
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from django.contrib.auth.models import User

from chatcore.models import Session
from tests.conftest import Live
from tests.support.anthropic_client import (
    HELLO,
    MODEL,
    WEATHER,
    build_body,
    claude,
    client,
    create_client,
    get_last_call,
    gpt,
    list_calls,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["claude", "client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)

NEXT: Any = [{"role": "user", "content": "And now?"}]


def continue_thread(client: Anthropic, message_id: str, messages: Any = NEXT) -> Any:
    thread: Any = {"type": "continue", "previous_message_id": message_id}
    return client.beta.messages.create(**build_body(messages, thread=thread))


def test_the_clients_thread_sends_only_what_is_new(
    client: Anthropic, scripted: ScriptedModel
) -> None:
    thread = client.beta.messages.thread(
        model=MODEL, max_tokens=500, system="Be brief.", tools=[WEATHER]
    )
    thread.send(*HELLO)
    thread.send(*NEXT)
    assert len(thread.messages) == 4
    call = get_last_call(scripted)
    assert call["tools"]
    assert [text in json.dumps(call) for text in ("Be brief.", "Hello?", "And now?")] == [True] * 3
    assert Session.objects.get().message_count == 4


def test_the_clients_own_loop_of_tools_is_one_session(
    client: Anthropic, scripted: ScriptedModel
) -> None:
    @anthropic.beta_tool
    def weather(city: str) -> str:
        """Return the weather.

        Args:
            city: The city.
        """
        return f"Rain in {city}"

    calls = [make_tool_call("weather", {"city": city}, id=f"t_{city}") for city in ("Oslo", "Rome")]
    replies = [Reply(tool_calls=[call]) for call in calls]
    scripted.script(*replies, Reply(text="Take an umbrella."))
    runner = client.beta.messages.tool_runner(
        model=MODEL, max_tokens=500, messages=HELLO, tools=[weather]
    )
    answer: Any = runner.until_done()
    assert answer.content[0].text == "Take an umbrella."
    assert len(list_calls(scripted)) == 3
    assert Session.objects.get().message_count == 6


def test_a_thread_goes_on_behind_its_newest_answer_only(gpt: Anthropic) -> None:
    first: Any = gpt.beta.messages.create(**build_body(thread={"type": "create"}))
    assert continue_thread(gpt, first.id).id != first.id
    with pytest.raises(anthropic.BadRequestError) as refusal:
        continue_thread(gpt, first.id)
    assert refusal.value.error_code == "thread_already_continued"


def test_a_thread_of_somebody_else_is_not_found(gpt: Anthropic, live: Live) -> None:
    first: Any = gpt.beta.messages.create(**build_body(thread={"type": "create"}))
    stranger = create_client(live.url, User.objects.create_user("bob"))
    for message_id in (first.id, "msg_none"):
        with pytest.raises(anthropic.NotFoundError) as refusal:
            continue_thread(stranger, message_id)
        assert refusal.value.error_code == "thread_not_found"

"""Chat completions with a memory, and tools: the client's own and the built-in ones."""

from typing import Any

import openai
import pytest
from django.contrib.auth.models import User
from openai import OpenAI

from chatcore.models import Message, Session, Turn
from tests.conftest import Live
from tests.support.openai_client import MODEL, WEATHER, create_client, list_completions
from tests.support.remembered_completions import (
    ask,
    build_history,
    client,
    load_messages,
    user_says,
    verify_session,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client", "verify_session"]

pytestmark = pytest.mark.django_db(transaction=True)


def ask_for_weather(client: OpenAI, scripted: ScriptedModel, *, stream: bool = False) -> list[Any]:
    """Return the history up to a call of the client's tool."""
    scripted.script(
        Reply(text="Let me look.", tool_calls=[make_tool_call("weather", {"city": "Rome"}, id="r")])
    )
    if stream:
        with client.chat.completions.stream(
            model=MODEL, messages=user_says("Weather?"), tools=[WEATHER]
        ) as events:
            choice: Any = events.get_final_completion().choices[0]
    else:
        choice = ask(client, user_says("Weather?"), tools=[WEATHER]).choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me look.")
    assert choice.message.tool_calls[0].function.name == "weather"
    spaced = [
        {
            "id": "r",
            "type": "function",
            "function": {"name": "weather", "arguments": '{ "city":"Rome" }'},
        }
    ]
    return [
        *user_says("Weather?"),
        {"role": "assistant", "content": "Let me look.", "tool_calls": spaced},
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_the_turn_goes_on_with_the_results_of_the_clients_tools(
    client: OpenAI, scripted: ScriptedModel, stream: bool
) -> None:
    history = ask_for_weather(client, scripted, stream=stream)
    result = {"role": "tool", "tool_call_id": "r", "content": "Rain"}
    scripted.script(Reply(text="It rains."))
    if stream:
        chunks = list(ask(client, [*history, result], tools=[WEATHER], stream=True))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "It rains."
    else:
        assert (
            ask(client, [*history, result], tools=[WEATHER]).choices[0].message.content
            == "It rains."
        )
    assert [role for role, _ in load_messages()] == ["user", "assistant", "tool", "assistant"]
    assert Turn.objects.get().status == Turn.Status.COMPLETED
    second_answer = ask(client, [*history, result], tools=[WEATHER])
    assert second_answer.choices[0].message.content == "It rains."
    assert len(load_messages()) == 4
    scripted.script(Reply(text="You are welcome."))
    ask(
        client,
        [*history, result, {"role": "assistant", "content": "It rains."}, *user_says("Thanks")],
    )
    assert len(load_messages()) == 6


def test_results_whose_answer_failed_are_answered_when_they_come_again(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    history = [
        *ask_for_weather(client, scripted),
        {"role": "tool", "tool_call_id": "r", "content": "Rain"},
    ]
    scripted.script(Reply(status=422, text="No."), Reply(text="It rains."))
    with pytest.raises(openai.BadRequestError):
        ask(client, history, tools=[WEATHER])
    assert ask(client, history, tools=[WEATHER]).choices[0].message.content == "It rains."
    assert [role for role, _ in load_messages()] == ["user", "assistant", "tool", "assistant"]


def test_results_that_are_missing_are_asked_for(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(
        Reply(
            tool_calls=[
                make_tool_call("weather", {}, id="r"),
                make_tool_call("weather", {}, id="o"),
            ]
        )
    )
    message = (
        ask(client, user_says("Weather?"), tools=[WEATHER])
        .choices[0]
        .message.model_dump(exclude_none=True)
    )
    with pytest.raises(openai.BadRequestError) as refusal:
        ask(
            client,
            [
                *user_says("Weather?"),
                message,
                {"role": "tool", "tool_call_id": "r", "content": "Rain"},
            ],
            tools=[WEATHER],
        )
    assert "missing: o" in refusal.value.message


def test_a_client_that_asks_something_else_instead_gets_an_answer(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    ask_for_weather(client, scripted)
    scripted.script(Reply(text="Never mind, then."))
    assert ask(client, user_says("Forget it.")).choices[0].message.content == "Never mind, then."
    assert sorted(Turn.objects.values_list("status", flat=True)) == ["cancelled", "completed"]


def test_a_history_that_ends_with_results_from_elsewhere_is_answered(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    calls = [{"id": "r", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]
    history = [*user_says("Weather?"), {"role": "assistant", "content": None, "tool_calls": calls}]
    history += [{"role": "tool", "tool_call_id": "r", "content": "Rain"}]
    scripted.script(Reply(text="It rains."))
    assert ask(client, history, tools=[WEATHER]).choices[0].message.content == "It rains."
    assert [message["role"] for message in list_completions(scripted)[-1].json["messages"]] == [
        "user",
        "assistant",
        "tool",
    ]


def test_a_result_that_was_cut_when_it_was_stored_is_still_known(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    history = ask_for_weather(client, scripted)
    history.append({"role": "tool", "tool_call_id": "r", "content": "rain " * 8000})
    scripted.script(Reply(text="It rains."))
    ask(client, history, tools=[WEATHER])
    assert Message.objects.get(role="tool").original_chars == 40_000
    scripted.script(Reply(text="Yes."))
    ask(
        client,
        [*history, {"role": "assistant", "content": "It rains."}, *user_says("Really?")],
        tools=[WEATHER],
    )
    assert len(load_messages()) == 6


CLEARED = "[Old tool result content cleared]"


@pytest.mark.parametrize(("content", "is_edit"), [("rain " * 100, False), ("Rain.", True)])
def test_an_old_result_that_a_program_has_cleared_is_no_edit(
    client: OpenAI, scripted: ScriptedModel, content: str, is_edit: bool
) -> None:
    history = ask_for_weather(client, scripted)
    history.append({"role": "tool", "tool_call_id": "r", "content": content})
    scripted.default = Reply(text="It rains.")
    ask(client, history, tools=[WEATHER])
    history[-1] = history[-1] | {"content": CLEARED}
    ask(client, [*history, *build_history("", "It rains.", "Really?")[1:]], tools=[WEATHER])
    assert Message.objects.filter(content=content, branch=None).exists() is not is_edit
    assert Message.objects.filter(content=CLEARED).exists() is is_edit
    assert len(load_messages()) == 6


def test_a_newest_result_that_comes_again_and_shorter_is_an_edit(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    history = ask_for_weather(client, scripted)
    history.append({"role": "tool", "tool_call_id": "r", "content": "rain " * 100})
    scripted.default = Reply(text="It rains.")
    ask(client, history, tools=[WEATHER])
    history[-1] = history[-1] | {"content": "Sun."}
    ask(client, history, tools=[WEATHER])
    assert [content for role, content in load_messages() if role == "tool"] == ["Sun."]


def test_calls_of_built_in_tools_stay_behind_the_api(
    live: Live, user: User, session: Session, scripted: ScriptedModel
) -> None:
    client = create_client(live.url, user, default_headers={"X-Session-Id": str(session.pk)})
    scripted.script(
        Reply(
            text="Let me see.",
            tool_calls=[make_tool_call("calculate", {"expression": "6*7"}, id="c")],
        ),
        Reply(text="It is 42."),
    )
    chunks = list(ask(client, user_says("6*7?"), stream=True))
    words = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert words == "Let me see.\n\nIt is 42."
    assert not [chunk for chunk in chunks if chunk.choices[0].delta.tool_calls]
    ask(client, build_history("6*7?", words, "Sure?"))
    assert [role for role, _ in load_messages()] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]

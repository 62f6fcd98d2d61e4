"""Function tools: calls go out as items, outputs come back, and the same turn goes on."""

from typing import Any

import openai
import pytest
from openai import OpenAI

from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session, Turn
from chatcore.sessions import verification
from tests.support.anthropic_client import speak_anthropic
from tests.support.open_responses import (
    MODEL,
    WEATHER,
    check_response,
    check_stream,
    read_events,
)
from tests.support.openai_client import client, list_completions
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)
ROME = make_tool_call("weather", {"city": "Rome"}, id="call_rome")
OSLO = make_tool_call("weather", {"city": "Oslo"}, id="call_oslo")


@pytest.fixture(autouse=True)
def verify_sessions(client: OpenAI) -> Any:
    yield
    turn_runner.drain()
    for session in Session.objects.all():
        assert list(verification.find_violations(session)) == []


def build_output(call_id: str, text: str) -> Any:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def ask_weather(client: OpenAI, **other: Any) -> Any:
    return client.responses.create(model=MODEL, input="Weather?", tools=[WEATHER], **other)


def test_a_call_goes_out_and_its_output_continues_the_turn(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Let me look.", tool_calls=[ROME]), Reply(text="Sunny."))
    first = ask_weather(client)
    assert [item.type for item in first.output] == ["message", "function_call"]
    assert (first.status, first.output[0].phase) == ("completed", "commentary")
    second = client.responses.create(
        model=MODEL,
        previous_response_id=first.id,
        input=[build_output(first.output[1].call_id, "21 degrees")],
        tools=[WEATHER],
    )
    assert (second.output_text, second.previous_response_id) == ("Sunny.", first.id)
    assert Turn.objects.get().status == Turn.Status.COMPLETED
    # The first response still says what it said.
    assert client.responses.retrieve(first.id).output == first.output


def test_calls_are_streamed_by_the_standard(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(tool_calls=[ROME, OSLO]))
    events = read_events(client, input="Weather?", tools=[WEATHER])
    check_stream(events)
    check_response(events[-1]["response"])
    assert [item["call_id"] for item in events[-1]["response"]["output"]] == [
        "call_rome",
        "call_oslo",
    ]


def test_a_missing_output_is_named(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(tool_calls=[ROME, OSLO]))
    first = ask_weather(client)
    with pytest.raises(openai.BadRequestError, match=r"No tool output found .* call_oslo"):
        client.responses.create(
            model=MODEL, previous_response_id=first.id, input=[build_output("call_rome", "21")]
        )


def test_a_user_may_go_on_instead_of_the_outputs(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(tool_calls=[ROME]), Reply(text="Never mind, then."))
    first = ask_weather(client)
    second = client.responses.create(
        model=MODEL, previous_response_id=first.id, input="Never mind."
    )
    assert second.output_text == "Never mind, then."


def test_a_question_may_follow_the_outputs(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(tool_calls=[ROME]), Reply(text="Both."))
    first = ask_weather(client)
    client.responses.create(
        model=MODEL,
        previous_response_id=first.id,
        input=[build_output("call_rome", "21"), {"role": "user", "content": "And Oslo?"}],
    )
    # Without tools, what they said is told in words.
    sent = list_completions(scripted)[-1].json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert "21" in sent[2]["content"]
    assert sent[2]["content"].endswith("And Oslo?")
    current = Message.objects.filter(branch=None).order_by("seq")
    assert [message.role for message in current] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]


def test_a_whole_history_knows_a_question_behind_its_outputs(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=[ROME]), Reply(text="Both."), Reply(text="Welcome."))
    items: list[Any] = [{"role": "user", "content": "Weather?"}]
    more: list[list[Any]] = [
        [build_output("call_rome", "21"), {"role": "user", "content": "And Oslo?"}],
        [{"role": "user", "content": "Thanks."}],
    ]
    for extra in (*more, []):
        response = client.responses.create(model=MODEL, input=items, tools=[WEATHER])
        items += [*response.output, *extra]
    assert response.output_text == "Welcome."
    assert (Session.objects.count(), Message.objects.filter(branch=None).count()) == (1, 7)


def test_outputs_may_be_given_again_as_a_branch(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(tool_calls=[ROME]), Reply(text="Sunny."), Reply(text="Rainy."))
    first = ask_weather(client)
    for degrees, answer in (("21", "Sunny."), ("9", "Rainy.")):
        response = client.responses.create(
            model=MODEL, previous_response_id=first.id, input=[build_output("call_rome", degrees)]
        )
        assert response.output_text == answer
    current = Message.objects.filter(branch=None).order_by("seq")
    assert [message.content for message in current] == ["Weather?", "", "9", "Rainy."]


def test_a_whole_history_with_calls_stays_in_one_session(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=[ROME]), Reply(text="Sunny."), Reply(text="Welcome."))
    items: list[Any] = [{"role": "user", "content": "Weather?"}]
    for extra in ([build_output("call_rome", "21")], [{"role": "user", "content": "Thanks."}]):
        response = client.responses.create(model=MODEL, input=items, tools=[WEATHER])
        items += [*response.output, *extra]
    response = client.responses.create(model=MODEL, input=items, tools=[WEATHER])
    assert response.output_text == "Welcome."
    assert Session.objects.count() == 1
    assert Message.objects.count() == 6


def test_only_allowed_tools_are_offered(client: OpenAI, scripted: ScriptedModel) -> None:
    other = WEATHER | {"name": "stocks"}
    choice: Any = {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "stocks"}],
    }
    raw = client.responses.with_raw_response.create(
        model=MODEL, input="Hi", tools=[WEATHER, other], tool_choice=choice
    )
    sent = list_completions(scripted)[-1].json
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["stocks"]
    assert sent["tool_choice"] == "required"
    resource: Any = raw.http_response.json()
    check_response(resource)
    assert [tool["name"] for tool in resource["tools"]] == ["weather", "stocks"]
    assert resource["tool_choice"] == choice


def test_a_tool_that_no_server_here_runs_is_left_out_and_named(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    raw = client.responses.with_raw_response.create(
        model=MODEL, input="Hi", tools=[{"type": "web_search"}, WEATHER]
    )
    assert raw.headers["X-Ignored-Fields"] == "tools.web_search"
    sent = list_completions(scripted)[-1].json
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["weather"]


@pytest.mark.parametrize("store", [True, False])
def test_a_search_of_the_web_is_passed_on_to_a_provider_that_has_it(
    client: OpenAI, scripted: ScriptedModel, store: bool
) -> None:
    speak_anthropic(scripted)
    search: Any = {"type": "web_search", "filters": {"allowed_domains": ["example.org"]}}
    raw = client.responses.with_raw_response.create(
        model=MODEL, input="Hi", tools=[search, WEATHER], store=store
    )
    assert "X-Ignored-Fields" not in raw.headers
    names = [tool["name"] for tool in scripted.requests[-1].json["tools"]]
    assert names == ["web_search", "weather"]
    assert scripted.requests[-1].json["tools"][0] == {
        "type": "web_search_20250305",
        "name": "web_search",
        "allowed_domains": ["example.org"],
    }
    cached: Any = {"type": "web_search", "external_web_access": False}
    raw = client.responses.with_raw_response.create(
        model=MODEL, input="Hi", tools=[cached, WEATHER], store=store
    )
    assert raw.headers["X-Ignored-Fields"] == "tools.web_search"


@pytest.mark.parametrize("type", ["web_search", "web_search_preview"])
def test_a_search_of_the_web_is_chosen_where_its_provider_has_it(
    client: OpenAI, scripted: ScriptedModel, type: str
) -> None:
    speak_anthropic(scripted)
    choices: list[Any] = [
        {"type": type},
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": type}]},
    ]
    search: Any = {"type": type}
    for choice in choices:
        raw = client.responses.with_raw_response.create(
            model=MODEL, input="Hi", tools=[search, WEATHER], tool_choice=choice
        )
        assert "X-Ignored-Fields" not in raw.headers
        resource: Any = raw.http_response.json()
        assert resource["tool_choice"] == choice
    named, allowed = (request.json for request in scripted.requests[-2:])
    assert named["tool_choice"] == {"type": "tool", "name": "web_search"}
    assert [tool["name"] for tool in allowed["tools"]] == ["web_search"]
    assert allowed["tool_choice"] == {"type": "any"}


@pytest.mark.parametrize("type", ["web_search", "file_search", "image_generation", "of_next_year"])
@pytest.mark.parametrize("tools", [[], [WEATHER]])
def test_a_choice_of_a_tool_that_no_server_here_runs_is_left_out_and_named(
    client: OpenAI, scripted: ScriptedModel, type: str, tools: list[Any]
) -> None:
    choice: Any = {"type": type}
    raw = client.responses.with_raw_response.create(
        model=MODEL, input="Hi", tools=[choice, *tools], tool_choice=choice
    )
    assert raw.headers["X-Ignored-Fields"] == f"tools.{type}, tool_choice.{type}"
    assert "tool_choice" not in list_completions(scripted)[-1].json
    allowed: Any = {"type": "allowed_tools", "mode": "required", "tools": [choice]}
    raw = client.responses.with_raw_response.create(
        model=MODEL, input="Hi", tools=[choice, *tools], tool_choice=allowed
    )
    assert raw.headers["X-Ignored-Fields"] == f"tools.{type}"
    assert "tools" not in list_completions(scripted)[-1].json


def test_calls_over_the_limit_are_ignored(client: OpenAI, scripted: ScriptedModel) -> None:
    paris = make_tool_call("weather", {"city": "Paris"}, id="call_paris")
    scripted.default = Reply(tool_calls=[ROME, OSLO, paris])
    for store in (True, False):
        events = read_events(
            client, input="Weather?", tools=[WEATHER], max_tool_calls=2, store=store
        )
        check_stream(events)
        output = events[-1]["response"]["output"]
        assert [item["call_id"] for item in output] == ["call_rome", "call_oslo"]


def test_the_limit_counts_for_each_response(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(tool_calls=[ROME, OSLO]), Reply(tool_calls=[ROME, OSLO]))
    first = ask_weather(client, max_tool_calls=1)
    assert [item.call_id for item in first.output] == ["call_rome"]
    second = client.responses.create(
        model=MODEL,
        previous_response_id=first.id,
        input=[build_output("call_rome", "21 degrees")],
        tools=[WEATHER],
        max_tool_calls=1,
    )
    assert [item.type for item in second.output] == ["function_call"]


def test_a_model_that_has_made_its_calls_is_asked_for_words(
    client: OpenAI, scripted: ScriptedModel, session: Session
) -> None:
    session.tools = ["calculate"]
    session.external_id = "mine"
    session.save()
    calculate = make_tool_call("calculate", {"expression": "1 + 1"}, id="call_1")
    scripted.script(Reply(tool_calls=[calculate]), Reply(text="Two."))
    response = client.responses.create(
        model=MODEL, input="1 + 1?", max_tool_calls=1, extra_headers={"X-Session-Id": "mine"}
    )
    assert response.output_text == "Two."
    requests = [request.json for request in list_completions(scripted)]
    assert [request.get("tool_choice") for request in requests] == [None, "none"]
    assert requests[1]["tools"] == requests[0]["tools"]

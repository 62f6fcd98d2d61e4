"""Answers in a form: JSON by a schema, reasoning, strict tools, on both protocols."""

import json
from typing import Any

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from models_registry.models import AiModel, Provider
from tests.support.open_responses import (
    MODEL,
    WEATHER,
    check_response,
    check_stream,
    read_events,
)
from tests.support.openai_client import client, list_completions
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)


class Weather(BaseModel):
    city: str
    degrees: int


ROME = '{"city": "Rome", "degrees": 21}'


@pytest.fixture
def use_anthropic(model: AiModel, scripted: ScriptedModel) -> None:
    Provider.objects.update(
        protocol=Provider.Protocol.ANTHROPIC, base_url=scripted.anthropic_base_url
    )


def test_an_answer_is_parsed_by_the_official_helper(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text=ROME))
    response = client.responses.parse(model=MODEL, input="Weather?", text_format=Weather)
    assert response.output_parsed == Weather(city="Rome", degrees=21)
    sent = list_completions(scripted)[-1].json["response_format"]
    assert (sent["type"], sent["json_schema"]["name"]) == ("json_schema", "Weather")
    assert sent["json_schema"]["schema"]["required"] == ["city", "degrees"]


@pytest.mark.usefixtures("use_anthropic")
def test_a_schema_reaches_the_other_protocol(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text=ROME))
    response = client.responses.parse(
        model=MODEL, input="Weather?", text_format=Weather, reasoning={"effort": "low"}
    )
    assert response.output_parsed == Weather(city="Rome", degrees=21)
    sent = scripted.requests[-1].json["output_config"]
    assert sent["effort"] == "low"
    assert sent["format"]["schema"]["required"] == ["city", "degrees"]


@pytest.mark.usefixtures("use_anthropic")
def test_a_form_that_a_protocol_has_not_is_refused_by_name(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(
            model=MODEL, input="JSON!", text={"format": {"type": "json_object"}}
        )
    assert caught.value.param == "text.format"


def test_a_schema_is_repeated_as_the_standard_has_it(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text=ROME))
    text: Any = {"format": {"type": "json_schema", "name": "weather", "schema": {}}}
    raw = client.responses.with_raw_response.create(model=MODEL, input="Hi", text=text)
    check_response(raw.http_response.json())


@pytest.mark.parametrize("summary", [None, "auto"])
def test_reasoning_is_shown_in_the_form_that_was_asked_for(
    client: OpenAI, scripted: ScriptedModel, summary: Any
) -> None:
    scripted.script(Reply(text="Four.", reasoning="Two and two."))
    events = read_events(client, input="2+2?", reasoning={"effort": "high", "summary": summary})
    check_stream(events)
    check_response(events[-1]["response"])
    [reasoning, _] = events[-1]["response"]["output"]
    parts = reasoning["summary"] if summary else reasoning["content"]
    assert [part["text"] for part in parts] == ["Two and two."]
    assert list_completions(scripted)[-1].json["reasoning_effort"] == "high"


@pytest.mark.usefixtures("use_anthropic")
def test_sealed_reasoning_goes_back_to_the_model_that_wrote_it(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Four.", reasoning="Two and two."), Reply(text="Six."))
    include: Any = ["reasoning.encrypted_content"]
    first = client.responses.create(model=MODEL, input="2+2?", store=False, include=include)
    history: list[Any] = [{"role": "user", "content": "2+2?"}]
    history += [item.model_dump(exclude_unset=True) for item in first.output]
    history.append({"role": "user", "content": "And 2 more?"})
    client.responses.create(model=MODEL, input=history, store=False, include=include)
    [_, answer, _] = scripted.requests[-1].json["messages"]
    assert answer["content"][0]["thinking"] == "Two and two."


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.usefixtures("use_anthropic")
def test_a_client_that_keeps_the_items_of_a_stream_has_the_sealed_reasoning(
    client: OpenAI, scripted: ScriptedModel, store: bool
) -> None:
    scripted.script(Reply(text="Four.", reasoning="Two and two."), Reply(text="Six."))
    include = ["reasoning.encrypted_content"]
    events = read_events(client, input="2+2?", store=store, include=include)
    check_stream(events)
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert [item["type"] for item in items] == ["reasoning", "message"]
    history: list[Any] = [{"role": "user", "content": "2+2?"}, *items]
    history.append({"role": "user", "content": "And 2 more?"})
    client.responses.create(model=MODEL, input=history, store=False)
    [_, answer, _] = scripted.requests[-1].json["messages"]
    assert answer["content"][0]["thinking"] == "Two and two."


def test_a_strict_tool_is_sent_as_one(client: OpenAI, scripted: ScriptedModel) -> None:
    tools: Any = [WEATHER | {"strict": True}, WEATHER | {"name": "other"}]
    client.responses.create(model=MODEL, input="Hi", tools=tools)
    functions = [tool["function"] for tool in list_completions(scripted)[-1].json["tools"]]
    assert [function.get("strict") for function in functions] == [True, None]


def test_an_answer_at_its_limit_is_incomplete(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.default = Reply(text="One two", finish="length", usage=(5, 16))
    for store in (True, False):
        events = read_events(client, input="Count.", max_output_tokens=16, store=store)
        check_stream(events)
        assert events[-1]["type"] == "response.incomplete"
        assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
        assert events[-1]["response"]["output"][0]["status"] == "incomplete"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"metadata": {"key": 1}}, "metadata.key"),
        ({"temperature": 3}, "temperature"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"include": ["message.output_text.logprobs"]}, "include[0]"),
        ({"truncation": "always"}, "truncation"),
        ({"max_output_tokens": 1}, "max_output_tokens"),
        ({"conversation": "conv_x", "previous_response_id": "resp_x"}, "previous_response_id"),
        ({"store": False, "background": True}, "store"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"input": [{"role": "nobody", "content": "Hi"}]}, "input[0].role"),
        ({"input": [{"type": "computer_call"}]}, "input"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0].image_url",
        ),
        ({"tools": [WEATHER], "tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
        ({"tools": [{"name": "weather"}]}, "tools[0].type"),
        ({"tools": "weather"}, "tools"),
        ({"reasoning": {"effort": "utmost"}}, "reasoning.effort"),
        ({"context_management": [{"type": "other"}]}, "context_management[0].type"),
    ],
)
def test_bad_input_is_refused_by_name(client: OpenAI, body: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.post("/responses", cast_to=object, body={"model": MODEL, "input": "Hi", **body})
    assert caught.value.param == param


def test_an_unknown_model_is_404(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model="unknown", input="Hi")
    assert json.loads(caught.value.response.text)["error"]["code"] == "model_not_found"

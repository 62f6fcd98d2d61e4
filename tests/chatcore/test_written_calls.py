"""Tool calls that a small model writes as its text: read as calls, if they are nothing else."""

from typing import Any

import pytest
from openai import OpenAI

from models_registry.models import Provider
from tests.support.open_responses import MODEL, WEATHER, check_stream, read_events
from tests.support.openai_client import client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)
CALL = '{"name": "weather", "arguments": {"city": "Rome"}}'


@pytest.fixture(autouse=True)
def small_model(client: OpenAI) -> None:
    Provider.objects.update(options={"written_calls": True})


def answer(client: OpenAI, scripted: ScriptedModel, text: str, **other: Any) -> list[Any]:
    """Stream an answer of this text, and return its items."""
    scripted.script(Reply(text=text))
    events = read_events(client, input="Weather?", **{"tools": [WEATHER], **other})
    check_stream(events)
    output: list[Any] = events[-1]["response"]["output"]
    return output


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"```json\n{CALL}\n```",
        f"<tool_call>\n{CALL}\n</tool_call>",
        CALL.replace("arguments", "parameters"),
    ],
)
@pytest.mark.parametrize("store", [True, False])
def test_a_text_that_is_a_call_is_one(
    client: OpenAI, scripted: ScriptedModel, text: str, store: bool
) -> None:
    [item] = answer(client, scripted, text, store=store)
    assert (item["type"], item["name"]) == ("function_call", "weather")
    assert item["arguments"] == '{"city": "Rome"}'


def test_several_calls_are_read(client: OpenAI, scripted: ScriptedModel) -> None:
    items = answer(client, scripted, f"{CALL}\n{CALL}")
    assert [item["type"] for item in items] == ["function_call"] * 2
    assert items[0]["call_id"] != items[1]["call_id"]


def test_a_call_in_a_block_of_its_own_comes_behind_the_words(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    text = f"I look it up:\n\n```json\n{CALL}\n```\n\nThat is all."
    words, call = answer(client, scripted, text)
    assert words["content"][0]["text"] == text
    assert (words["phase"], call["name"]) == ("commentary", "weather")


@pytest.mark.parametrize(
    "text",
    [
        "It is sunny.",
        f"You could call {CALL}",
        f"{CALL} is how to call it.",
        CALL.replace("weather", "unknown"),
        '{"name": "weather", "arguments": "Rome"}',
        '{"name": "Rome", "people": 7}',
        "```python\nprint(1)\n```",
        '{"name": "weather", "arguments": {"city": "Ro',
        "{" * 3000,
    ],
)
def test_another_text_stays_a_text(client: OpenAI, scripted: ScriptedModel, text: str) -> None:
    [item] = answer(client, scripted, text)
    assert item["content"][0]["text"] == text


def test_without_tools_a_text_is_a_text(client: OpenAI, scripted: ScriptedModel) -> None:
    [item] = answer(client, scripted, CALL, tools=[])
    assert item["content"][0]["text"] == CALL


def test_a_text_that_breaks_off_is_kept(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text=CALL, cut_after=4))
    events = read_events(client, input="Weather?", tools=[WEATHER])
    response = events[-1]["response"]
    assert response["status"] == "failed"
    assert CALL.startswith(response["output"][0]["content"][0]["text"])


def test_other_providers_mean_what_they_write(client: OpenAI, scripted: ScriptedModel) -> None:
    Provider.objects.update(options={})
    [item] = answer(client, scripted, CALL, model=MODEL)
    assert item["type"] == "message"

"""A long task of a client without a session is trimmed inside, however many messages follow."""

from typing import Any

import pytest
from anthropic import Anthropic
from openai import OpenAI

from compaction.core.presets import PRESETS
from models_registry.models import AiModel
from tests.support.anthropic_client import gpt
from tests.support.openai_client import MODEL, WEATHER, client, list_completions, list_sizes
from tests.support.scripted_model import ScriptedModel

__all__ = ["client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)
WINDOW = 16_384
ROUNDS = 60
TASK = "Read all sixty files and remember that the code word is heliotrope."
LATER_QUESTIONS = 4


def build_result(number: int) -> str:
    return f"File {number}: " + "lorem ipsum " * 100  # about 300 tokens


def ask_completions(client: OpenAI, later: list[tuple[str, str]]) -> None:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for number in range(ROUNDS):
        function = {"name": "weather", "arguments": f'{{"city": "{number}"}}'}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        result = {"tool_call_id": f"call_{number}", "content": build_result(number)}
        messages.append({"role": "tool"} | result)
    messages += [{"role": role, "content": text} for role, text in later]
    client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER])


def ask_messages(client: Anthropic, later: list[tuple[str, str]]) -> None:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for number in range(ROUNDS):
        call = {"type": "tool_use", "id": f"call_{number}", "name": "weather", "input": {}}
        result = {"tool_use_id": f"call_{number}", "content": build_result(number)}
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [{"type": "tool_result"} | result]})
    messages += [{"role": role, "content": text} for role, text in later]
    tool: Any = {"name": "weather", "input_schema": {"type": "object"}}
    client.messages.create(model=MODEL, max_tokens=100, messages=messages, tools=[tool])


def ask_responses(client: OpenAI, later: list[tuple[str, str]]) -> None:
    items: list[Any] = [{"role": "user", "content": TASK}]
    for number in range(ROUNDS):
        call = {"name": "weather", "call_id": f"call_{number}", "arguments": "{}"}
        items.append({"type": "function_call"} | call)
        output = {"call_id": f"call_{number}", "output": build_result(number)}
        items.append({"type": "function_call_output"} | output)
    items += [{"role": role, "content": text} for role, text in later]
    tool: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
    client.responses.create(model=MODEL, input=items, tools=[tool], store=False)


def check_request(request: dict[str, Any]) -> None:
    """Check that the question is there, the newest rounds, and each call with its result."""
    messages = request["messages"]
    assert TASK in str(messages[:2])
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert calls == results
    assert f"File {ROUNDS - 1}: " in str(messages)
    assert "File 0: " not in str(messages)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("api", ["completions", "messages", "responses"])
@pytest.mark.usefixtures("keep_nothing")
def test_a_long_task_stays_in_view(
    request: pytest.FixtureRequest, scripted: ScriptedModel, model: AiModel, api: str, preset: str
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=WINDOW, policy=preset)
    ask: dict[str, Any] = {
        "completions": ask_completions,
        "messages": ask_messages,
        "responses": ask_responses,
    }
    sdk = request.getfixturevalue("gpt" if api == "messages" else "client")
    later = [("assistant", "I have read them all.")]
    for number in range(LATER_QUESTIONS):
        later.append(("user", f"What is in file {number}?"))
        ask[api](sdk, later)
        later.append(("assistant", "Lorem ipsum."))
    requests = list_completions(scripted)
    assert len(requests) == LATER_QUESTIONS
    for received in requests:
        check_request(received.json)
    # A cut moves in steps of up to half of the room.
    sizes = list_sizes(scripted)
    assert min(sizes) > max(sizes) * 0.4

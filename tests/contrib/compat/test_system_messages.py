"""System messages in the middle of a conversation stay in their place.

Programs repeat reminders while a task runs. What was sent before must not change by them, because
providers keep the beginning of a request in their cache and charge for what they read anew.
"""

from itertools import pairwise
from typing import Any

import pytest
from anthropic import Anthropic
from openai import OpenAI

from chatcore.models import Session, Turn
from models_registry.models import AiModel
from tests.support.anthropic_client import claude, gpt
from tests.support.openai_client import MODEL, WEATHER, client, list_completions
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["claude", "client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 12
REMINDER = "Remember to keep your list of tasks."


@pytest.fixture(autouse=True)
def widen_window(model: AiModel) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=65_536)


def without_marks(value: Any) -> Any:
    """Return a message without the marks of a cache, which move to the end of each request."""
    if isinstance(value, dict):
        return {key: without_marks(each) for key, each in value.items() if key != "cache_control"}
    return [without_marks(each) for each in value] if isinstance(value, list) else value


def check_stability(requests: list[dict[str, Any]]) -> None:
    """Check that each request begins with all that the one before it said."""
    for before, after in pairwise(requests):
        assert after.get("system") == before.get("system")
        old = without_marks(before["messages"])
        assert without_marks(after["messages"])[: len(old)] == old
    assert str(requests[-1]["messages"]).count(REMINDER) == ROUNDS // 3


@pytest.mark.parametrize("session", ["", "named"])
def test_reminders_in_chat_completions(
    client: OpenAI, scripted: ScriptedModel, session: str
) -> None:
    headers = {"X-Session-Id": session} if session else {}
    messages: list[Any] = [
        {"role": "system", "content": "You write code."},
        {"role": "user", "content": "Fix the bug."},
    ]
    for number in range(ROUNDS):
        scripted.script(Reply(tool_calls=[make_tool_call("weather", id=f"call_{number}")]))
        answer = client.chat.completions.create(
            model=MODEL, messages=messages, tools=[WEATHER], extra_headers=headers
        )
        messages.append(answer.choices[0].message.model_dump(exclude_none=True))
        messages.append(
            {"role": "tool", "tool_call_id": f"call_{number}", "content": f"Read {number}."}
        )
        if number % 3 == 0:
            messages.append({"role": "system", "content": REMINDER})
    client.chat.completions.create(
        model=MODEL, messages=messages, tools=[WEATHER], extra_headers=headers
    )
    check_stability([received.json for received in list_completions(scripted)])
    if session:
        assert Session.objects.get().system_prompt == "You write code."
        assert Turn.objects.count() == 1


@pytest.mark.parametrize("protocol", ["gpt", "claude"])
def test_reminders_in_messages(
    request: pytest.FixtureRequest, scripted: ScriptedModel, protocol: str
) -> None:
    anthropic_client: Anthropic = request.getfixturevalue(protocol)
    messages: list[Any] = [{"role": "user", "content": "Fix the bug."}]
    tool: Any = {"name": "weather", "input_schema": {"type": "object"}}
    for number in range(ROUNDS):
        scripted.script(Reply(tool_calls=[make_tool_call("weather", id=f"call_{number}")]))
        answer = anthropic_client.messages.create(
            model=MODEL, max_tokens=100, system="You write code.", messages=messages, tools=[tool]
        )
        messages.append({"role": "assistant", "content": [b.model_dump() for b in answer.content]})
        result = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": f"{number}."}
        messages.append({"role": "user", "content": [result]})
        if number % 3 == 0:
            messages.append({"role": "system", "content": REMINDER})
    anthropic_client.messages.create(
        model=MODEL, max_tokens=100, system="You write code.", messages=messages, tools=[tool]
    )
    check_stability([received.json for received in scripted.requests if received.json])


@pytest.mark.parametrize("store", [False, True])
def test_reminders_in_responses(client: OpenAI, scripted: ScriptedModel, store: bool) -> None:
    items: list[Any] = [
        {"role": "developer", "content": "You write code."},
        {"role": "user", "content": "Fix the bug."},
    ]
    tool: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
    for number in range(ROUNDS):
        scripted.script(Reply(tool_calls=[make_tool_call("weather", id=f"call_{number}")]))
        answer = client.responses.create(model=MODEL, input=items, tools=[tool], store=store)
        items += [item.model_dump(exclude_none=True) for item in answer.output]
        items.append(
            {"type": "function_call_output", "call_id": f"call_{number}", "output": f"{number}."}
        )
        if number % 3 == 0:
            items.append({"role": "developer", "content": REMINDER})
    client.responses.create(model=MODEL, input=items, tools=[tool], store=store)
    check_stability([received.json for received in list_completions(scripted)])
    if store:
        assert Session.objects.get().system_prompt == "You write code."

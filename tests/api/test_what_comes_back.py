"""What a provider wants back with a call, through each API, for clients that send their history."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from anthropic import Anthropic
from django.contrib.auth.models import User
from openai import OpenAI

from models_registry.models import AiModel
from tests.conftest import Live
from tests.support import anthropic_client, openai_client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow
from tests.support.thought_blocks import ORDERS, stream_blocks

pytestmark = pytest.mark.django_db(transaction=True)

MODEL = openai_client.MODEL
SIGNATURE = {"google": {"thought_signature": "signed"}}
DETAILS = [{"type": "reasoning.encrypted", "data": "signed", "id": "call_1", "index": 0}]
FRAGMENT = {"index": 0, "id": "call_1", "function": {"name": "weather", "arguments": "{}"}}
Deltas = list[dict[str, Any]]
# What a server sends before a call and with it, and where it must stand in the next request.
CASES: list[tuple[Deltas, Callable[[dict[str, Any]], Any], Any]] = [
    (
        [{"tool_calls": [FRAGMENT | {"extra_content": SIGNATURE}]}],
        lambda answer: answer["tool_calls"][0].get("extra_content"),
        SIGNATURE,
    ),
    (
        [{"content": "Well."}, {"tool_calls": [FRAGMENT | {"extra_content": SIGNATURE}]}],
        lambda answer: answer["tool_calls"][0].get("extra_content"),
        SIGNATURE,
    ),
    (
        [{"reasoning_content": "Hm."}, {"tool_calls": [FRAGMENT]}],
        lambda answer: answer.get("reasoning_content"),
        "Hm.",
    ),
    (
        [{"reasoning": "Hm.", "reasoning_details": DETAILS}, {"tool_calls": [FRAGMENT]}],
        lambda answer: answer.get("reasoning_details"),
        DETAILS,
    ),
]
CASE_IDS = ["signature", "text and signature", "reasoning", "details"]


def stream_deltas(deltas: Deltas) -> Reply:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return Reply(body=body.encode(), headers={"Content-Type": "text/event-stream"})


def go_on_by_chat_completions(
    url: str, user: User, *, streamed: bool, more: Any = (), models: Any = (MODEL, MODEL)
) -> None:
    client = openai_client.create_client(url, user)
    history: Any = [{"role": "user", "content": "The weather?"}]
    for name in models:
        body: Any = {"model": name, "messages": history, "tools": [openai_client.WEATHER]}
        answer = _ask_chat_completions(client, body | dict(more), streamed=streamed)
        calls = answer.get("tool_calls") or []
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "Sun."} for call in calls
        ]
        history = [*history, answer, *results]


def _ask_chat_completions(client: OpenAI, body: Any, *, streamed: bool) -> dict[str, Any]:
    if not streamed:
        message = client.chat.completions.create(**body).choices[0].message
        return message.model_dump(exclude_none=True)
    with client.chat.completions.stream(**body) as stream:
        return stream.get_final_completion().choices[0].message.model_dump(exclude_none=True)


def go_on_by_messages(
    url: str, user: User, *, streamed: bool, more: Any = (), models: Any = (MODEL, MODEL)
) -> None:
    client = anthropic_client.create_client(url, user)
    history: Any = [{"role": "user", "content": "The weather?"}]
    for name in models:
        body = {
            "model": name,
            "max_tokens": 100,
            "messages": history,
            "tools": [anthropic_client.WEATHER],
        }
        content = _ask_messages(client, body | dict(more), streamed=streamed)
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "Sun."}
            for block in content
            if block["type"] == "tool_use"
        ]
        history = [*history, {"role": "assistant", "content": content}]
        history += [{"role": "user", "content": results}] if results else []


def _ask_messages(client: Anthropic, body: Any, *, streamed: bool) -> list[dict[str, Any]]:
    if not streamed:
        return [block.model_dump() for block in client.messages.create(**body).content]
    with client.messages.stream(**body) as stream:
        return [
            block.model_dump(exclude={"parsed_output"})
            for block in stream.get_final_message().content
        ]


def go_on_by_responses(
    url: str, user: User, *, streamed: bool, more: Any = (), models: Any = (MODEL, MODEL)
) -> None:
    client = openai_client.create_client(url, user)
    history: Any = [{"role": "user", "content": "The weather?"}]
    tool: Any = {"type": "function", "strict": False, **openai_client.WEATHER["function"]}
    for name in models:
        body: Any = {
            "model": name,
            "input": history,
            "tools": [tool],
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        output = _ask_responses(client, body | dict(more), streamed=streamed)
        results = [
            {"type": "function_call_output", "call_id": item["call_id"], "output": "Sun."}
            for item in output
            if item["type"] == "function_call"
        ]
        history = [*history, *output, *results]


def _ask_responses(client: OpenAI, body: Any, *, streamed: bool) -> list[dict[str, Any]]:
    if streamed:
        with client.responses.stream(**body) as stream:
            response = stream.get_final_response()
    else:
        response = client.responses.create(**body)
    return [
        item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output
    ]


@pytest.mark.parametrize("streamed", mark_others_slow([True, False]), ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("go_on", "more"),
    [
        (go_on_by_chat_completions, {}),
        (go_on_by_chat_completions, {"user": "a-session"}),
        (go_on_by_messages, {}),
        (go_on_by_responses, {}),
    ],
    ids=["chat completions", "chat completions, session", "messages", "responses"],
)
@pytest.mark.parametrize(("deltas", "find", "expected"), CASES, ids=CASE_IDS)
def test_it_comes_back_through_each_api(
    deltas: Deltas,
    find: Callable[[dict[str, Any]], Any],
    expected: Any,
    go_on: Callable[..., None],
    more: Any,
    streamed: bool,
    live: Live,
    user: User,
    model: AiModel,
    scripted: ScriptedModel,
) -> None:
    scripted.script(stream_deltas(deltas), Reply(text="Sunny."))
    go_on(live.url, user, streamed=streamed, more=more)
    messages = scripted.requests[-1].json["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert find(messages[1]) == expected


@pytest.mark.parametrize("streamed", mark_others_slow([True, False]), ids=["streamed", "whole"])
@pytest.mark.parametrize(
    "go_on", [go_on_by_chat_completions, go_on_by_messages, go_on_by_responses]
)
def test_another_model_gets_nothing_of_it(
    go_on: Callable[..., None],
    streamed: bool,
    live: Live,
    user: User,
    model: AiModel,
    scripted: ScriptedModel,
) -> None:
    AiModel.objects.create(provider=model.provider, name="other", supports_tools=True)
    delta = {"reasoning_content": "Hm."}
    scripted.script(
        stream_deltas([delta, {"tool_calls": [FRAGMENT | {"extra_content": SIGNATURE}]}]),
        Reply(text="Sunny."),
    )
    go_on(live.url, user, streamed=streamed, models=(MODEL, "scripted/other"))
    assert "signed" not in json.dumps(scripted.requests[-1].json["messages"])


@pytest.mark.parametrize("streamed", mark_others_slow([True, False]))
@pytest.mark.parametrize(
    "go_on", [go_on_by_chat_completions, go_on_by_messages, go_on_by_responses]
)
@pytest.mark.parametrize("blocks", ORDERS)
def test_claudes_blocks_come_back_in_their_order(
    blocks: list[dict[str, Any]],
    go_on: Callable[..., None],
    streamed: bool,
    live: Live,
    user: User,
    model: AiModel,
    scripted: ScriptedModel,
) -> None:
    anthropic_client.speak_anthropic(scripted)
    scripted.script(stream_blocks(blocks), Reply(text="Sunny."))
    go_on(live.url, user, streamed=streamed)
    sent = scripted.requests[-1].json["messages"][1]["content"]
    without_ids = [{name: block[name] for name in block if name != "id"} for block in sent]
    assert without_ids == [block for block in blocks if block.get("text") != " "]

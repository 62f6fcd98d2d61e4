"""Chat completions without a memory, as OpenAI's own client sees them."""

import asyncio
import base64
from typing import Any

import openai
import pytest
from django.contrib.auth.models import User
from openai import AsyncOpenAI, OpenAI

from models_registry import keys
from models_registry.models import AiModel, Provider
from tests.conftest import Live
from tests.support.openai_client import (
    HELLO,
    MODEL,
    WEATHER,
    WINDOW,
    client,
    create_key,
    list_completions,
    read_arguments,
)
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_completion_has_words_an_end_and_usage(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Good morning.", usage=(120, 7, 100)))
    answer = client.chat.completions.create(model=MODEL, messages=HELLO)
    choice = answer.choices[0]
    assert (choice.message.role, choice.message.content, choice.finish_reason) == (
        "assistant",
        "Good morning.",
        "stop",
    )
    assert answer.usage
    assert (
        answer.usage.prompt_tokens,
        answer.usage.completion_tokens,
        answer.usage.total_tokens,
    ) == (120, 7, 127)
    assert answer.usage.prompt_tokens_details
    assert answer.usage.prompt_tokens_details.cached_tokens == 100
    assert (answer.object, answer.model) == ("chat.completion", MODEL)
    assert answer.id.startswith("chatcmpl-")


def test_what_is_asked_reaches_the_provider(client: OpenAI, scripted: ScriptedModel) -> None:
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        {
            "role": "user",
            "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}],
        },
    ]
    client.chat.completions.create(
        model="test-model",
        messages=messages,
        temperature=0.5,
        seed=7,
        stop=["END"],
        max_completion_tokens=99,
        response_format={"type": "json_object"},
        store=True,
    )
    sent = list_completions(scripted)[-1].json
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief.\n\nBe kind."},
        {"role": "user", "content": "One.\n\nTwo."},
    ]
    assert (sent["temperature"], sent["seed"], sent["stop"], sent["max_tokens"]) == (
        0.5,
        7,
        ["END"],
        99,
    )
    assert sent["response_format"] == {"type": "json_object"}
    assert not {"store", "metadata"} & set(sent)


def test_a_stream_comes_in_chunks_with_reasoning_and_usage_at_its_end(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(reasoning="Let me think.", chunks=["Good ", "morning."], usage=(12, 3)))
    chunks = list(
        client.chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert (
        "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        == "Good morning."
    )
    thoughts = [
        getattr(chunk.choices[0].delta, "reasoning_content", None) or ""
        for chunk in chunks
        if chunk.choices
    ]
    assert "".join(thoughts) == "Let me think."
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].usage
    assert (
        chunks[-1].choices,
        chunks[-1].usage.prompt_tokens,
        chunks[-1].usage.completion_tokens,
    ) == ([], 12, 3)


def test_usage_comes_only_when_it_is_asked_for(client: OpenAI) -> None:
    assert all(
        chunk.usage is None
        for chunk in client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
    )


def test_the_asynchronous_client_works_too(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    key = create_key(user)

    async def talk() -> tuple[str | None, str]:
        async with AsyncOpenAI(base_url=f"{live.url}/v1", api_key=key, max_retries=0) as client:
            completion = await client.chat.completions.create(model=MODEL, messages=HELLO)
            stream = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
            return completion.choices[0].message.content, "".join(
                [chunk.choices[0].delta.content or "" async for chunk in stream]
            )

    scripted.default = Reply(text="Good morning.")
    assert asyncio.run(talk()) == ("Good morning.", "Good morning.")


@pytest.mark.parametrize("streamed", [False, True])
def test_tools_make_a_round_trip(client: OpenAI, scripted: ScriptedModel, streamed: bool) -> None:
    scripted.script(
        Reply(
            tool_calls=[
                make_tool_call("weather", {"city": "Rome"}, id="r"),
                make_tool_call("weather", {"city": "Oslo"}, id="o"),
            ]
        )
    )
    if streamed:
        with client.chat.completions.stream(model=MODEL, messages=HELLO, tools=[WEATHER]) as stream:
            choice: Any = stream.get_final_completion().choices[0]
    else:
        choice = client.chat.completions.create(
            model=MODEL, messages=HELLO, tools=[WEATHER], tool_choice="auto"
        ).choices[0]
    assert (choice.finish_reason, choice.message.content or None) == ("tool_calls", None)
    assert [
        (each.id, each.function.name, read_arguments(each)["city"])
        for each in choice.message.tool_calls
    ] == [
        ("r", "weather", "Rome"),
        ("o", "weather", "Oslo"),
    ]
    history: Any = [
        *HELLO,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [c.model_dump() for c in choice.message.tool_calls],
        },
    ]
    history += [
        {"role": "tool", "tool_call_id": "r", "content": "Rain"},
        {"role": "tool", "tool_call_id": "o", "content": "Snow"},
    ]
    scripted.script(Reply(text="Rain in Rome, snow in Oslo."))
    assert (
        client.chat.completions.create(model=MODEL, messages=history, tools=[WEATHER])
        .choices[0]
        .finish_reason
        == "stop"
    )
    sent = list_completions(scripted)[-1].json
    assert [message["role"] for message in sent["messages"]] == [
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["weather"]


def test_an_answer_that_is_cut_off_says_so(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(
        Reply(text="Good mor", finish="length"), Reply(text="I will not.", finish="refusal")
    )
    assert (
        client.chat.completions.create(model=MODEL, messages=HELLO).choices[0].finish_reason
        == "length"
    )
    assert (
        client.chat.completions.create(model=MODEL, messages=HELLO).choices[0].finish_reason
        == "content_filter"
    )


def test_images_reach_a_model_that_sees_and_a_line_one_that_does_not(
    client: OpenAI, model: AiModel, scripted: ScriptedModel
) -> None:
    url = "data:image/png;base64," + base64.b64encode(build_png(8, 8)).decode()
    question: Any = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": url}},
            ],
        }
    ]
    client.chat.completions.create(model=MODEL, messages=question)
    assert "cannot see images" in list_completions(scripted)[-1].json["messages"][0]["content"]
    AiModel.objects.update(supports_images=True)
    client.chat.completions.create(model=MODEL, messages=question)
    assert (
        list_completions(scripted)[-1].json["messages"][0]["content"][1]["image_url"]["url"] == url
    )


def test_parameters_are_said_in_the_other_protocols_words(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    Provider.objects.update(
        protocol="anthropic",
        base_url=scripted.anthropic_base_url,
        encrypted_api_key=keys.encrypt("sk-ant-test"),
    )
    client.chat.completions.create(
        model=MODEL,
        messages=HELLO,
        tools=[WEATHER],
        tool_choice="required",
        stop="END",
        temperature=1.5,
        seed=1,
        parallel_tool_calls=False,
    )
    sent = scripted.requests[-1].json
    assert (sent["stop_sequences"], sent["temperature"]) == (["END"], 1)
    assert sent["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert not {"seed", "stop", "parallel_tool_calls"} & set(sent)


def test_models_are_listed_by_provider_and_name_and_found_by_both(
    client: OpenAI, model: AiModel
) -> None:
    listed = {each.id: each for each in client.models.list()}
    assert getattr(listed[MODEL], "context_window") == WINDOW  # noqa: B009, RUF100
    assert listed[MODEL].owned_by == "scripted"
    assert [client.models.retrieve(name).id for name in (MODEL, "test-model")] == [MODEL, MODEL]
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("none")

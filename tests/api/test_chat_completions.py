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
    MODEL,
    WINDOW,
    count_tokens,
    create_client,
    create_key,
    limit_window,
    list_completions,
    list_sizes,
    read_arguments,
)
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel, make_overflow, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
HELLO: Any = [{"role": "user", "content": "Hello?"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather now.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture
def client(live: Live, user: User, model: AiModel) -> OpenAI:
    return create_client(live.url, user)


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


def test_what_is_asked_reaches_the_provider_and_what_is_unknown_does_not(
    client: OpenAI, scripted: ScriptedModel
) -> None:
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
        extra_body={"surprise": 1},
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
    assert not {"surprise", "store", "metadata"} & set(sent)


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


def test_an_address_of_an_image_is_not_fetched(client: OpenAI) -> None:
    question: Any = [
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/cat.png"}}],
        }
    ]
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(model=MODEL, messages=question)
    assert refusal.value.param == "messages[0].content[0].image_url.url"


def test_a_wrong_key_is_an_authentication_error(live: Live, model: AiModel) -> None:
    with pytest.raises(openai.AuthenticationError) as refusal:
        OpenAI(base_url=f"{live.url}/v1", api_key="wrong", max_retries=0).chat.completions.create(
            model=MODEL, messages=HELLO
        )
    assert refusal.value.code == "invalid_api_key"


def test_an_unknown_model_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refusal:
        client.chat.completions.create(model="nobody/none", messages=HELLO)
    assert (refusal.value.code, refusal.value.type) == ("model_not_found", "invalid_request_error")


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "Hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"n": 2}, "n"),
        ({"temperature": 9}, "temperature"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    ],
)
def test_a_wrong_field_is_a_bad_request_that_names_it(
    client: OpenAI, wrong: dict[str, Any], param: str
) -> None:
    body: Any = {"model": MODEL, "messages": HELLO} | wrong
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(**body)
    assert refusal.value.param == param


def test_a_message_over_the_limit_is_too_large(client: OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as refusal:
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "ü" * 140_000}]
        )
    assert (refusal.value.status_code, refusal.value.code) == (413, "request_too_large")


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


def test_too_many_turns_are_a_rate_limit_error_that_says_when_to_come_again(
    client: OpenAI, settings: Any
) -> None:
    settings.CHATCORE = settings.CHATCORE | {"TURNS_PER_MINUTE": 1}
    client.chat.completions.create(model=MODEL, messages=HELLO)
    with pytest.raises(openai.RateLimitError) as refusal:
        client.chat.completions.create(model=MODEL, messages=HELLO)
    assert refusal.value.code == "rate_limit_exceeded"
    assert int(refusal.value.response.headers["retry-after"]) >= 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("reply", "error", "code"),
    [
        (
            Reply(status=401, text="bad key sk-verysecretkey1"),
            openai.InternalServerError,
            "provider_auth",
        ),
        (
            Reply(status=429, text="slow down", headers={"retry-after": "900"}),
            openai.RateLimitError,
            "rate_limit_exceeded",
        ),
        (Reply(status=422, text="no such parameter"), openai.BadRequestError, "provider_rejected"),
        (Reply(cut_after=0), openai.InternalServerError, "provider_unavailable"),
    ],
)
def test_a_providers_failure_is_an_error_of_its_kind(
    client: OpenAI,
    scripted: ScriptedModel,
    reply: Reply,
    error: type[openai.APIStatusError],
    code: str,
    streamed: bool,
) -> None:
    scripted.default = reply
    with pytest.raises(error) as failed:
        client.chat.completions.create(model=MODEL, messages=HELLO, stream=streamed)
    assert failed.value.code == code
    assert "verysecret" not in failed.value.response.text


def test_a_failure_in_the_middle_of_a_stream_is_raised(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["Good ", "morning"], cut_after=1))
    with pytest.raises(openai.APIError) as failed:
        list(client.chat.completions.create(model=MODEL, messages=HELLO, stream=True))
    assert failed.value.code == "provider_unavailable"


def test_models_are_listed_by_provider_and_name_and_found_by_both(
    client: OpenAI, model: AiModel
) -> None:
    listed = {each.id: each for each in client.models.list()}
    assert getattr(listed[MODEL], "context_window") == WINDOW  # noqa: B009, RUF100
    assert listed[MODEL].owned_by == "scripted"
    assert [client.models.retrieve(name).id for name in (MODEL, "test-model")] == [MODEL, MODEL]
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("none")


def test_an_address_that_is_none_says_so_in_the_same_form(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refusal:
        client.embeddings.create(model="any", input="text")
    assert refusal.value.code == "unknown_url"


def test_a_history_past_the_window_is_sent_without_its_oldest_messages(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    limit_window(scripted, lambda request: Reply(text="Noted."))
    history: Any = [{"role": "system", "content": "Be brief."}]
    for number in range(60):
        history += [
            {"role": "user", "content": f"{number} " + "lisbon " * 100},
            {"role": "assistant", "content": "Noted."},
        ]
    history += [{"role": "user", "content": "And now?"}]
    assert count_tokens({"messages": history}) > WINDOW
    answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=history)
    sent = list_completions(scripted)[-1].json["messages"]
    assert (sent[0], sent[-1]) == (history[0], history[-1])
    assert sent[1:] == history[-len(sent) + 1 :]
    assert answer.headers["x-context-compacted"] == "true"
    assert count_tokens({"messages": sent}) - 300 <= int(answer.headers["x-context-tokens"]) <= 6963
    assert len(list_completions(scripted)) == 1


def test_a_history_past_the_window_is_sent_whole_where_nothing_is_optimized_by_itself(
    client: OpenAI, scripted: ScriptedModel, settings: Any
) -> None:
    settings.COMPACTION = settings.COMPACTION | {"AUTOMATIC": False}
    history: Any = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "lisbon " * 1000}
        for n in range(21)
    ]
    scripted.script(make_overflow(21_000, WINDOW))
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(model=MODEL, messages=history)
    assert refusal.value.code == "context_length_exceeded"
    assert [request.json["messages"] for request in list_completions(scripted)] == [history]


def test_a_history_within_the_window_is_sent_as_it_is(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=HELLO)
    assert answer.headers["x-context-compacted"] == "false"
    assert list_completions(scripted)[-1].json["messages"] == HELLO


def test_a_refused_request_is_sent_once_more_and_smaller(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    history: Any = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "里斯本" * 200}
        for n in range(21)
    ]
    scripted.script(make_overflow(9000, WINDOW))
    answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=history)
    first, shortened = (request.json["messages"] for request in list_completions(scripted))
    assert first == history
    assert shortened == history[-len(shortened) :]
    assert len(shortened) < len(history)
    assert answer.headers["x-context-compacted"] == "true"


def test_a_message_larger_than_the_window_is_told_as_openai_tells_it(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "lisbon " * 8000}]
        )
    assert (refusal.value.code, refusal.value.param) == ("context_length_exceeded", "messages")
    assert not list_completions(scripted)


def test_what_answers_teach_of_a_models_counting_is_believed(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    history: Any = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "lisbon " * 300}
        for n in range(11)
    ]
    scripted.default = lambda request: Reply(text="Noted.", usage=(2 * count_tokens(request), 5))
    for _ in range(8):
        answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=history)
    assert answer.headers["x-context-compacted"] == "true"
    assert list_sizes(scripted)[0] > list_sizes(scripted)[-1]


def resend_everything(client: OpenAI, scripted: ScriptedModel, *, turns: int, words: int) -> None:
    """Talk as an unmodified client does, which sends its whole history each time."""
    limit_window(scripted, lambda request: Reply(text="Noted: " + "yes " * words))
    history: Any = [{"role": "system", "content": "You plan trips."}]
    for number in range(turns):
        history.append({"role": "user", "content": f"{number}: " + "lisbon " * words})
        answer = client.chat.completions.create(model=MODEL, messages=history)
        history.append({"role": "assistant", "content": answer.choices[0].message.content})
    assert count_tokens({"messages": history}) > 2 * WINDOW
    assert max(list_sizes(scripted)) <= WINDOW
    assert len(list_sizes(scripted)) == turns


def test_a_client_that_resends_its_whole_history_keeps_working(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    resend_everything(client, scripted, turns=40, words=200)


@pytest.mark.slow
def test_it_keeps_working_for_five_hundred_turns(
    client: OpenAI, scripted: ScriptedModel, settings: Any
) -> None:
    settings.CHATCORE = settings.CHATCORE | {"TURNS_PER_MINUTE": 100_000}
    resend_everything(client, scripted, turns=500, words=60)

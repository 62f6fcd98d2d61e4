"""Fields of a request are carried, refused by their names, or named in a header."""

import base64
from typing import Any

import openai
import pytest
from django.contrib.auth.models import User
from openai import OpenAI

from chatcore.models import Attachment
from models_registry import keys
from models_registry.models import AiModel, Provider
from tests.conftest import Live
from tests.support.openai_client import HELLO, MODEL, WEATHER, create_client, list_completions
from tests.support.sample_files import build_pdf
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)
PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
JSON_SCHEMA: Any = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}


@pytest.fixture
def client(live: Live, user: User, model: AiModel) -> OpenAI:
    return create_client(live.url, user)


@pytest.fixture
def anthropic_model(model: AiModel, scripted: ScriptedModel) -> AiModel:
    Provider.objects.update(
        protocol="anthropic",
        base_url=scripted.anthropic_base_url,
        encrypted_api_key=keys.encrypt("sk-ant-test"),
    )
    return model


def ask(client: OpenAI, **fields: Any) -> Any:
    """Send a request with these fields, known to the SDK or not, and return the raw answer."""
    return client.chat.completions.with_raw_response.create(
        model=MODEL, messages=fields.pop("messages", HELLO), extra_body=fields
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("logprobs", True),
        ("top_logprobs", 3),
        ("functions", [{"name": "get_weather"}]),
        ("function_call", "auto"),
        ("prediction", {"type": "content", "content": "x"}),
        ("chat_template_kwargs", {"enable_thinking": False}),
        ("guided_json", PERSON),
    ],
)
def test_what_would_change_the_answer_and_is_not_carried_is_refused(
    client: OpenAI, scripted: ScriptedModel, field: str, value: object
) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        ask(client, **{field: value})
    assert refusal.value.param == field
    assert list_completions(scripted) == []


def test_an_operator_may_have_more_carried(client: OpenAI, scripted: ScriptedModel) -> None:
    Provider.objects.update(options={"params": ["chat_template_kwargs"]})
    answer = ask(client, chat_template_kwargs={"enable_thinking": False})
    sent = list_completions(scripted)[-1].json
    assert sent["chat_template_kwargs"] == {"enable_thinking": False}
    assert "x-ignored-fields" not in answer.headers


def test_fields_that_change_no_answer_are_named_in_a_header(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    messages = [{"role": "user", "name": "alice", "content": "Hi"}]
    answer = ask(client, messages=messages, user="alice", store=True, logprobs=False)
    assert answer.headers["x-ignored-fields"] == "messages.name, store, user"
    assert not {"user", "store"} & set(list_completions(scripted)[-1].json)


def test_a_strict_tool_stays_strict(client: OpenAI, scripted: ScriptedModel) -> None:
    tool = {**WEATHER, "function": {**WEATHER["function"], "strict": True}}
    ask(client, tools=[tool, {**tool, "function": {"name": "other", "parameters": PERSON}}])
    functions = [tool["function"] for tool in list_completions(scripted)[-1].json["tools"]]
    assert [function.get("strict") for function in functions] == [True, None]


def test_a_schema_of_the_answer_reaches_the_other_protocol(
    client: OpenAI, anthropic_model: AiModel, scripted: ScriptedModel
) -> None:
    tool = {**WEATHER, "function": {**WEATHER["function"], "strict": True}}
    ask(client, response_format=JSON_SCHEMA, tools=[tool])
    sent = scripted.requests[-1].json
    assert sent["output_config"] == {"format": {"type": "json_schema", "schema": PERSON}}
    assert sent["tools"][0]["strict"] is True


def test_json_without_a_schema_is_refused_where_the_protocol_has_none(
    client: OpenAI, anthropic_model: AiModel
) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        ask(client, response_format={"type": "json_object"})
    assert refusal.value.param == "response_format"


def test_parameters_that_the_other_protocol_does_not_know_are_named(
    client: OpenAI, anthropic_model: AiModel
) -> None:
    answer = ask(client, seed=7, frequency_penalty=0.5, temperature=0.2)
    assert answer.headers["x-ignored-fields"] == "frequency_penalty, seed"


def test_libraries_know_a_wrong_key_and_a_full_window_by_their_words(
    live: Live, client: OpenAI, model: AiModel
) -> None:
    with pytest.raises(openai.AuthenticationError, match="Incorrect API key provided"):
        ask(OpenAI(base_url=f"{live.url}/v1", api_key="wrong"))
    too_long = [{"role": "user", "content": "word " * 12_000}]
    with pytest.raises(
        openai.BadRequestError, match=r"This model's maximum context length is .*_exceeded\)"
    ):
        ask(client, messages=too_long)


def test_a_pdf_file_reaches_the_model_as_its_text(client: OpenAI, scripted: ScriptedModel) -> None:
    data = base64.b64encode(build_pdf("The meeting is on Friday.")).decode()
    file = {"filename": "plan.pdf", "file_data": f"data:application/pdf;base64,{data}"}
    parts = [{"type": "text", "text": "When is it?"}, {"type": "file", "file": file}]
    for headers in ({}, {"X-Session-Id": "plans"}):
        client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": parts}],  # type: ignore[list-item,misc]
            extra_headers=headers,
        )
        text = list_completions(scripted)[-1].json["messages"][-1]["content"]
        assert text.startswith("When is it?")
        assert "plan.pdf" in text
        assert "The meeting is on Friday." in text
    assert Attachment.objects.get().name == "plan.pdf"


def test_a_file_by_its_id_is_refused(client: OpenAI) -> None:
    parts = [{"type": "file", "file": {"file_id": "file-123"}}]
    with pytest.raises(openai.BadRequestError) as refusal:
        ask(client, messages=[{"role": "user", "content": parts}])
    assert refusal.value.param == "messages[0].content[0].file.file_id"


@pytest.mark.parametrize("headers", [{}, {"X-Session-Id": "trip"}])
def test_parts_of_unknown_types_are_left_out_and_named(
    client: OpenAI, scripted: ScriptedModel, headers: dict[str, str]
) -> None:
    parts: Any = [
        {"type": "text", "text": "Hello?"},
        {"type": "of_tomorrow", "value": 1},
        {"type": "of_tomorrow"},
    ]
    answer = client.chat.completions.with_raw_response.create(
        model=MODEL,
        messages=[
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}, parts[1]]},
            {"role": "user", "content": parts},
        ],
        extra_headers=headers,
    )
    ignored = answer.headers["x-ignored-fields"].split(", ")
    assert ignored == ["messages.content.of_tomorrow"]
    sent = list_completions(scripted)[-1].json["messages"]
    assert [message["content"] for message in sent] == ["Be brief.", "Hello?"]


@pytest.mark.parametrize("part", [{"type": "input_audio", "input_audio": {}}, {"text": "Hello?"}])
def test_audio_and_parts_without_a_type_are_refused(client: OpenAI, part: Any) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": [part]}])
    assert refusal.value.param == "messages[0].content[0].type"

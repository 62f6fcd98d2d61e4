"""Anthropic's own client against `/v1/messages`, over models of both protocols."""

import base64
from typing import Any

import pytest
from anthropic import Anthropic
from django.contrib.auth.models import User

from chatcore.models import Session
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.anthropic_client import (
    HELLO,
    MODEL,
    ask,
    ask_raw,
    build_body,
    claude,
    client,
    get_last_call,
    gpt,
)
from tests.support.openai_client import create_key
from tests.support.sample_files import build_pdf, build_png
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["claude", "client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_message_is_answered(client: Anthropic, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Hi Alice.", usage=(12, 3)))
    message = ask(client)
    assert message.content[0].text == "Hi Alice."
    assert (message.type, message.role, message.model) == ("message", "assistant", MODEL)
    assert (message.stop_reason, message.stop_sequence) == ("end_turn", None)
    assert (message.usage.input_tokens, message.usage.output_tokens) == (12, 3)
    assert message.id.startswith("msg_")
    assert message._request_id
    assert not Session.objects.exists()


def test_a_token_may_come_as_a_bearer_token(live: Live, user: User, model: AiModel) -> None:
    client = Anthropic(base_url=live.url, auth_token=create_key(user), api_key=None, max_retries=0)
    assert ask(client).content[0].text


def test_a_message_is_streamed(client: Anthropic, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Hi Alice.", chunks=["Hi ", "Alice."], usage=(12, 3)))
    with client.messages.stream(**build_body()) as stream:
        events = [event.type for event in stream]
        message = stream.get_final_message()
    assert (events[0], events[-1]) == ("message_start", "message_stop")
    assert events.index("content_block_start") < events.index("content_block_stop")
    assert message.content[0].model_dump()["text"] == "Hi Alice."
    assert (message.stop_reason, message.usage.input_tokens) == ("end_turn", 12)
    assert message.usage.output_tokens == 3


def test_an_answer_of_all_its_tokens_says_so(client: Anthropic, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Hi", finish="length"))
    assert ask(client, max_tokens=1).stop_reason == "max_tokens"


def test_the_system_text_may_come_in_blocks(client: Anthropic, scripted: ScriptedModel) -> None:
    ask(client, system=[{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Rhyme."}])
    call = get_last_call(scripted)
    system = call.get("system") or call["messages"][0]["content"]
    assert system == "Be brief.\n\nRhyme."


def test_parameters_reach_a_model_of_the_same_protocol(
    claude: Anthropic, scripted: ScriptedModel
) -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    params: Any = {
        "stop_sequences": ["END"],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema}},
        "metadata": {"user_id": "u-1"},
    }
    sampling = {"temperature": 0.5, "top_k": 7}  # the client's types know them no more
    ask(claude, **params, max_tokens=1_500, extra_body=sampling)
    call = get_last_call(scripted)
    assert {name: call[name] for name in params | sampling} == params | sampling
    assert call["max_tokens"] == 1_500


def test_parameters_are_translated_for_a_model_of_the_other_protocol(
    gpt: Anthropic, scripted: ScriptedModel
) -> None:
    schema = {"type": "object", "properties": {}}
    raw = ask_raw(
        gpt,
        HELLO,
        stop_sequences=["END"],
        output_config={"effort": "max", "format": {"type": "json_schema", "schema": schema}},
        thinking={"type": "enabled", "budget_tokens": 1024},
        service_tier="auto",
    )
    call = get_last_call(scripted)
    assert (call["stop"], call["reasoning_effort"], call["max_tokens"]) == (["END"], "xhigh", 500)
    assert call["response_format"]["json_schema"]["schema"] == schema
    assert "thinking" not in call
    assert raw.headers["x-ignored-fields"] == "service_tier, thinking"


def test_an_answer_may_take_half_of_the_window(client: Anthropic, scripted: ScriptedModel) -> None:
    ask(client, max_tokens=64_000)
    assert get_last_call(scripted)["max_tokens"] == 4096


def test_images_and_documents_reach_the_model(
    client: Anthropic, scripted: ScriptedModel, model: AiModel
) -> None:
    AiModel.objects.update(supports_images=True)
    png = base64.b64encode(build_png(2, 2)).decode()
    pdf = base64.b64encode(build_pdf("The swordfish.")).decode()
    sources: list[Any] = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}},
        {
            "type": "document",
            "title": "menu.pdf",
            "source": {"type": "base64", "media_type": "application/pdf", "data": pdf},
        },
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "A plain note."},
        },
        {"type": "text", "text": "What is this?"},
    ]
    ask(client, [{"role": "user", "content": sources}])
    content = get_last_call(scripted)["messages"][0]["content"]
    sent = str(content)
    assert all(text in sent for text in ("What is this?", "swordfish", "menu.pdf", "A plain note."))
    assert {part["type"] for part in content} & {"image", "image_url"}


@pytest.mark.usefixtures("keep_nothing")
def test_thoughts_are_shown_as_they_were_signed(claude: Anthropic, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Four.", reasoning="Two and two."), Reply(text="Yes."))
    answer = ask(claude)
    thought = answer.content[0]
    assert (thought.type, thought.thinking, thought.signature) == (
        "thinking",
        "Two and two.",
        "signed",
    )
    ask(
        claude,
        [
            *HELLO,
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": "?"},
        ],
    )
    assert get_last_call(scripted)["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "Two and two.",
        "signature": "signed",
    }


def test_thoughts_are_streamed_before_the_text(client: Anthropic, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Four.", reasoning="Two and two."))
    open_blocks: set[int] = set()
    with client.messages.stream(**build_body()) as stream:
        for event in stream:
            if event.type == "content_block_start":
                assert not open_blocks
                open_blocks.add(event.index)
            elif event.type == "content_block_stop":
                open_blocks.remove(event.index)
        message = stream.get_final_message()
    thought, text = message.content
    assert (thought.type, text.type) == ("thinking", "text")
    assert thought.type == "thinking"
    assert thought.thinking == "Two and two."
    assert thought.signature


def test_a_thought_that_nobody_signed_is_sent_to_no_provider_that_signs(
    claude: Anthropic, scripted: ScriptedModel
) -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "chatcore"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "Hi."}]}
    ask(claude, [*HELLO, answer, {"role": "user", "content": "?"}])
    assert get_last_call(scripted)["messages"][1]["content"] == [{"type": "text", "text": "Hi."}]


def test_marks_of_the_cache_reach_a_model_of_the_same_protocol(
    claude: Anthropic, scripted: ScriptedModel
) -> None:
    mark = {"type": "ephemeral"}
    tool: Any = {"name": "now", "input_schema": {"type": "object"}, "cache_control": mark}
    ask(
        claude,
        [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": mark}]}],
        system=[{"type": "text", "text": "Be brief.", "cache_control": mark | {"ttl": "1h"}}],
        tools=[tool],
    )
    call = get_last_call(scripted)
    assert call["system"][0]["cache_control"] == mark | {"ttl": "1h"}
    assert call["tools"][0]["cache_control"] == mark
    assert call["messages"][0]["content"][0]["cache_control"] == mark


def test_marks_of_the_cache_do_not_disturb_a_model_of_the_other_protocol(
    gpt: Anthropic, scripted: ScriptedModel
) -> None:
    mark = {"type": "ephemeral"}
    ask(gpt, [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": mark}]}])
    assert "cache_control" not in str(get_last_call(scripted))


def test_tokens_of_a_cache_are_counted_apart(claude: Anthropic, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Hi", usage=(100, 3, 60, 30)))
    usage = ask(claude).usage
    assert (usage.input_tokens, usage.cache_read_input_tokens) == (10, 60)
    assert usage.cache_creation_input_tokens == 30


def test_a_beginning_of_the_answer_is_handed_on(claude: Anthropic, scripted: ScriptedModel) -> None:
    ask(claude, [*HELLO, {"role": "assistant", "content": "The best answer is ("}])
    assert get_last_call(scripted)["messages"][-1]["role"] == "assistant"


def test_headers_tell_the_request_its_size_and_the_limits(gpt: Anthropic) -> None:
    raw = ask_raw(gpt, HELLO)
    assert raw.headers["request-id"] == raw.headers["x-request-id"]
    assert int(raw.headers["x-context-tokens"]) > 0
    assert raw.headers["x-context-compacted"] == "false"
    assert int(raw.headers["anthropic-ratelimit-requests-remaining"]) > 0

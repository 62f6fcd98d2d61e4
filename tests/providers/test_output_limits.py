"""How much a model may write is learned from its refusal, and doubted once a day."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.setup.connection_test import call_provider
from compaction.runs.engine import compact_now
from models_registry.models import AiModel, Provider
from tests.support.compaction_sessions import fill_session, say, use_anthropic
from tests.support.provider_calls import (
    build_connection,
    catch_error,
    make_request,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

Body = dict[str, Any]
REFUSALS = [
    "max_tokens is too large: {asked}. This model supports at most {limit} completion tokens,"
    " whereas you provided {asked}.",
    "max_tokens: {asked} > {limit}, which is the maximum allowed number of output tokens for"
    " claude-3-5-sonnet-20241022",
    "Invalid max_tokens value, the valid range of max_tokens is [1, {limit}]",
    "`max_tokens` must be less than or equal to `{limit}`, the maximum value for `max_tokens` is"
    " less than the `context_window` for this model",
    "Unable to submit request because it has a maxOutputTokens value of {asked} but the supported"
    " range is from 1 (inclusive) to {limit_plus_one} (exclusive). Update the value and try again.",
    "The maximum tokens you requested exceeds the model limit of {limit}. Try again with a maximum"
    " tokens value that is lower than {limit}.",
    "Malformed input request: #/max_tokens: {asked} is not less or equal to {limit}, please"
    " reformat your input and try again.",
    "Expected max_tokens to be between 1 and {limit} but received {asked}",
    "max_tokens参数非法。取值范围 [1, {limit}]",
    "Requested {asked} output tokens; the model can generate no more than {limit}",
    "The number of tokens to generate ({asked}) is above the allowed {limit}.",
    "too many tokens: max tokens must be less than or equal to {limit}, the maximum output length"
    " for this model - received {asked}.",
    "Output token limit exceeded: requested {asked}, allowed {limit}.",
    "The maximum number of generated tokens is {limit}.",
]


def limit_output(words: str, limit: int = 1024) -> Any:
    """Return a server that refuses more than so many tokens of an answer."""

    def answer(body: Body) -> Reply:
        asked = body.get("max_tokens", 0)
        if asked <= limit:
            return Reply(text="Sure.")
        text = words.format(asked=asked, limit=limit, limit_plus_one=limit + 1)
        return Reply(status=400, text=text)

    return answer


def list_asked(scripted: ScriptedModel) -> list[int]:
    return [received.json["max_tokens"] for received in scripted.requests]


@pytest.mark.parametrize("words", REFUSALS)
def test_a_number_is_learned_once(words: str, session: Session, scripted: ScriptedModel) -> None:
    scripted.default = limit_output(words)
    session.params = {"max_tokens": 3_000}
    session.save()
    assert [say(session).status for _ in range(2)] == ["completed"] * 2
    assert list_asked(scripted) == [3_000, 1_024, 1_024]


def refuse_field(name: str, message: str) -> Reply:
    """Return Pydantic's refusal of a field, as servers of FastAPI send it."""
    detail = [{"loc": ["body", name], "msg": message, "type": "value_error"}]
    return Reply(status=422, body=json.dumps({"detail": detail}).encode())


def test_the_field_that_a_servers_check_refuses_is_read(
    session: Session, scripted: ScriptedModel
) -> None:
    def answer(body: Body) -> Reply:
        if "stream_options" in body:
            return refuse_field("stream_options", "Extra inputs are not permitted")
        if body["max_tokens"] > 1024:
            return refuse_field("max_tokens", "Input should be less than or equal to 1024")
        return Reply(text="Sure.")

    scripted.default = answer
    session.params = {"max_tokens": 3_000}
    session.save()
    assert [say(session).status for _ in range(2)] == ["completed"] * 2
    assert list_asked(scripted) == [3_000, 3_000, 1_024, 1_024]


def test_without_a_number_the_half_is_tried(session: Session, scripted: ScriptedModel) -> None:
    scripted.default = limit_output("max_tokens is too large for this model.")
    session.params = {"max_tokens": 3_000}
    session.save()
    assert say(session).status == "completed"
    assert list_asked(scripted) == [3_000, 1_500, 750]


def learn_limit(session: Session, scripted: ScriptedModel) -> Provider:
    scripted.default = limit_output(REFUSALS[0])
    session.refresh_from_db()
    session.params = {"max_tokens": 3_000}
    session.save()
    say(session)
    provider = Provider.objects.get()
    assert provider.list_learned() == {"test-model": {"output_limit": 1_024}}
    return provider


def age_facts(provider: Provider, **age: float) -> None:
    facts = provider.learned["models"]["test-model"]
    facts["learned_at"] = (timezone.now() - timedelta(**age)).isoformat()
    provider.save()


def test_it_is_tried_again_after_a_day(session: Session, scripted: ScriptedModel) -> None:
    provider = learn_limit(session, scripted)
    age_facts(provider, hours=23)
    say(session)
    age_facts(provider, hours=25)
    say(session)
    assert list_asked(scripted)[2:] == [1_024, 3_000, 1_024]
    age_facts(Provider.objects.get(), hours=25)
    scripted.default = Reply(text="Sure.")
    say(session)
    assert list_asked(scripted)[5:] == [3_000]


def test_the_button_test_doubts_it(session: Session, scripted: ScriptedModel) -> None:
    provider = learn_limit(session, scripted)
    assert "problem" not in call_provider(provider)
    assert Provider.objects.get().list_learned().get("test-model", {}) == {}


def test_an_operators_number_and_option_go_before_it(
    session: Session, scripted: ScriptedModel
) -> None:
    learn_limit(session, scripted)
    model = AiModel.objects.get()
    model.max_output_tokens = 3_000
    model.save()
    assert Provider.objects.get().list_learned().get("test-model", {}) == {}
    learn_limit(session, scripted)
    Provider.objects.update(options={"output_limit": 500})
    say(session)
    assert list_asked(scripted)[-1] == 500


BUDGET_REFUSAL = (
    "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation"
    " at https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
    "#max-tokens-and-context-window-size-with-extended-thinking"
)


def refuse_small_room(body: Body) -> Reply:
    budget = body.get("thinking", {}).get("budget_tokens", 0)
    if body["max_tokens"] <= budget:
        return Reply(status=400, text=BUDGET_REFUSAL)
    return Reply(text="Sure.")


def test_the_usual_room_grows_with_the_budget_of_thoughts(
    session: Session, scripted: ScriptedModel
) -> None:
    use_anthropic(session, scripted)
    scripted.default = refuse_small_room
    session.params = {"thinking": {"type": "enabled", "budget_tokens": 10_000}}
    session.save()
    assert say(session).status == "completed"
    assert list_asked(scripted) == [14_096]


async def test_a_budget_above_the_answer_is_no_refusal_for_length(scripted: ScriptedModel) -> None:
    scripted.default = refuse_small_room
    request = make_request(
        max_tokens=1_000, params={"thinking": {"type": "enabled", "budget_tokens": 10_000}}
    )
    error = await catch_error(build_connection(scripted, "anthropic"), request)
    assert (error.type, error.may_be_overflow) == ("provider_rejected", False)
    assert len(scripted.requests) == 1


async def test_a_full_window_is_no_limit_of_the_answer(scripted: ScriptedModel) -> None:
    scripted.default = Reply(
        status=400,
        text="input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000,"
        " decrease input length or `max_tokens` and try again",
    )
    error = await catch_error(
        build_connection(scripted, "anthropic"), make_request(max_tokens=20_000)
    )
    assert error.type == "context_overflow"
    assert len(scripted.requests) == 1


def test_reasoning_under_the_name_of_a_gateway_is_sent_back(
    session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    """DeepSeek V4 behind OpenRouter, whose refusal may come as a breakdown."""

    def answer(body: Body) -> Reply:
        answers = [each for each in body["messages"] if each["role"] == "assistant"]
        if all(isinstance(each.get("reasoning"), str) for each in answers):
            return Reply(text="Sure.")
        raw = '{"error":{"message":"The `reasoning` in the thinking mode must be passed back."}}'
        words = {"message": "Provider returned error", "code": 502, "metadata": {"raw": raw}}
        return Reply(status=502, body=json.dumps({"error": words}).encode())

    scripted.default = answer
    path = f"/api/v1/sessions/{session.pk}/messages"
    for _ in range(3):
        assert api.post(path, {"content": "Hello?"}).json()["status"] == "completed"
    facts = Provider.objects.get().list_learned()["test-model"]
    assert facts == {"dialect": {"reasoning": "all", "reasoning_field": "reasoning"}}


THINKING = {"type": "enabled", "budget_tokens": 10_000}


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"thinking": THINKING, "max_tokens": 10_000}, "max_tokens"),
        ({"thinking": THINKING}, "thinking"),
    ],
)
def test_room_that_thoughts_do_not_leave_is_refused_when_it_is_set(
    params: Body, field: str, is_new: bool, session: Session, api: APIClient
) -> None:
    Provider.objects.update(protocol="anthropic")
    limit = 8_192 if field == "thinking" else 64_000
    AiModel.objects.update(max_output_tokens=limit)
    path = "/api/v1/sessions" + ("" if is_new else f"/{session.pk}")
    send = api.post if is_new else api.patch
    response = send(path, {"model": str(session.model), "params": params})
    fields = [error["field"] for error in response.json()["errors"]]
    assert (response.status_code, fields) == (400, [f"params.{field}"])
    fitting = {"thinking": THINKING | {"budget_tokens": 2_048}, "max_tokens": 2_049}
    assert api.patch(f"/api/v1/sessions/{session.pk}", {"params": fitting}).status_code == 200


@pytest.mark.parametrize(
    ("path", "field", "body"),
    [
        ("chat/completions", "max_tokens", {"messages": [{"role": "user", "content": "Hi"}]}),
        (
            "chat/completions",
            "max_completion_tokens",
            {"messages": [{"role": "user", "content": "Hi"}]},
        ),
        ("messages", "max_tokens", {"messages": [{"role": "user", "content": "Hi"}]}),
        ("responses", "max_output_tokens", {"input": "Hi"}),
    ],
)
def test_the_compatible_apis_refuse_room_that_thoughts_do_not_leave(
    path: str, field: str, body: Body, session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    Provider.objects.update(
        protocol="anthropic",
        base_url=scripted.anthropic_base_url,
        options={"body": {"thinking": THINKING}},
    )
    AiModel.objects.update(context_window_size=200_000)
    request = {"model": str(session.model), field: 10_000, **body}
    response = api.post(f"/v1/{path}", request)
    assert response.status_code == 400
    assert field in str(response.json())
    assert "budget_tokens" in str(response.json())
    assert not scripted.requests
    assert api.post(f"/v1/{path}", request | {field: 10_001}).status_code == 200
    if path == "messages":
        assert api.post("/v1/messages/count_tokens", request).status_code == 200


@pytest.mark.parametrize("limits", [{"max_output_tokens": 8_000}, {"context_window_size": 16_000}])
def test_what_a_model_cannot_write_shortens_its_thoughts_too(
    limits: Body, session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    Provider.objects.update(protocol="anthropic", base_url=scripted.anthropic_base_url)
    AiModel.objects.update(**{"context_window_size": 200_000, **limits})
    request = {
        "model": str(session.model),
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 32_000,
    }
    response = api.post("/v1/messages", request | {"thinking": THINKING})
    assert response.status_code == 200, response.json()
    sent = scripted.requests[-1].json
    assert sent["max_tokens"] == 8_000
    assert sent["thinking"] == THINKING | {"budget_tokens": 2_500}
    Provider.objects.update(options={"body": {"thinking": THINKING}})
    response = api.post("/v1/messages", request)
    assert "8000 tokens together" in str(response.json())
    Provider.objects.update(options={})
    AiModel.objects.update(max_output_tokens=2_000)
    response = api.post("/v1/messages", request | {"thinking": THINKING})
    assert response.status_code == 400
    assert "2000 tokens together" in str(response.json())
    assert "more than" not in str(response.json())


def test_an_import_refuses_room_that_thoughts_do_not_leave(
    session: Session, api: APIClient
) -> None:
    Provider.objects.update(protocol="anthropic")
    document = api.get(f"/api/v1/sessions/{session.pk}/export").json()
    document["session"]["params"] = {"thinking": THINKING, "max_tokens": 10_000}
    response = api.post("/api/v1/sessions/import", document)
    assert response.status_code == 400
    assert "budget_tokens" in str(response.json())


def test_the_budget_of_the_server_counts_too(session: Session, api: APIClient) -> None:
    Provider.objects.update(protocol="anthropic", options={"body": {"thinking": THINKING}})
    path = f"/api/v1/sessions/{session.pk}"
    assert api.patch(path, {"params": {"max_tokens": 4_000}}).status_code == 400
    off = {"max_tokens": 4_000, "thinking": {"type": "disabled"}}
    # What an operator sets is sent in place of what a session sets.
    assert api.patch(path, {"params": off}).status_code == 400
    Provider.objects.update(options={})
    assert api.patch(path, {"params": off}).status_code == 200


def test_a_budget_for_thoughts_asks_for_no_more_than_the_model_writes(
    session: Session, scripted: ScriptedModel
) -> None:
    Provider.objects.update(protocol="anthropic", base_url=scripted.anthropic_base_url)
    AiModel.objects.update(max_output_tokens=12_000)
    session.params = {"thinking": THINKING}
    session.save()
    say(session)
    assert scripted.requests[-1].json["max_tokens"] == 12_000


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_server_that_refuses_empty_reasoning_gets_what_the_model_thought(
    field: str, session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    """Answers from before the refusal have a text that says so, and later ones their own."""

    def answer(body: Body) -> Reply:
        answers = [each for each in body["messages"] if each["role"] == "assistant"]
        if not all(str(each.get(field) or "").strip() for each in answers):
            words = f"The `{field}` in the thinking mode must be passed back to the API."
            return Reply(status=400, text=words)
        delta = {field: f"Thought {len(answers)}.", "content": f"Answer {len(answers)}."}
        chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}
        body_bytes = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        return Reply(body=body_bytes, headers={"Content-Type": "text/event-stream"})

    scripted.default = answer
    path = f"/api/v1/sessions/{session.pk}/messages"
    for _ in range(4):
        assert api.post(path, {"content": "Hello?"}).json()["status"] == "completed"
    sent = [each for each in scripted.requests[-1].json["messages"] if each["role"] == "assistant"]
    assert [each[field] for each in sent] == [
        "The reasoning was not kept.",
        "Thought 1.",
        "Thought 2.",
    ]
    assert len(scripted.requests) == 5


@pytest.mark.parametrize(
    "refusal",
    [
        "The `content[].thinking` in the thinking mode must be passed back to the API.",
        "messages.1: a thinking block is required while thinking is enabled",
    ],
)
def test_a_server_of_messages_gets_unsigned_thoughts_with_each_answer(
    refusal: str, session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    """Answers from before the refusal have a block that says so, and later ones their own."""
    Provider.objects.update(protocol="anthropic", base_url=scripted.anthropic_base_url)

    def answer(body: Body) -> Reply:
        answers = [each for each in body["messages"] if each["role"] == "assistant"]
        if not all(any(block.get("thinking") for block in each["content"]) for each in answers):
            return Reply(status=400, text=refusal)
        if not answers:
            return Reply(text="Answer.")
        blocks = [
            {"type": "thinking", "thinking": f"Thought {len(answers)}."},
            {"type": "text", "text": "Answer."},
        ]
        message = {"type": "message", "content": blocks, "stop_reason": "end_turn"}
        data: list[Body] = [message, {"type": "message_stop"}]
        events = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in data)
        return Reply(body=events.encode(), headers={"Content-Type": "text/event-stream"})

    scripted.default = answer
    path = f"/api/v1/sessions/{session.pk}/messages"
    for _ in range(4):
        response = api.post(path, {"content": "Hello?"}).json()
        assert response["status"] == "completed", response
    sent = [each for each in scripted.requests[-1].json["messages"] if each["role"] == "assistant"]
    assert [each["content"][0]["thinking"] for each in sent] == [
        "The reasoning was not kept.",
        "Thought 1.",
        "Thought 2.",
    ]
    assert len(scripted.requests) == 5


TAGGED = [
    "<think>Hm, hm.</think>Yes.",
    "◁think▷Hm, hm.◁/think▷Yes.",
    "[THINK]Hm, hm.[/THINK]Yes.",
    "<|channel|>analysis<|message|>Hm, hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
    "Sure.\n<think>\nHm, hm.\n</think>\nYes.",
]


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize("written", TAGGED)
def test_thoughts_of_stored_answers_are_neither_sent_nor_summarized(
    protocol: str, written: str, session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    """An import has them in its texts, as other programs show them."""
    if protocol == "anthropic":
        Provider.objects.update(protocol="anthropic", base_url=scripted.anthropic_base_url)
    scripted.script(Reply(text="Noted."))
    say(session)
    session.messages.filter(role="assistant").update(content=written)
    scripted.script(Reply(text="Noted."))
    say(session)
    body = json.dumps(scripted.requests[-1].json["messages"], ensure_ascii=False)
    assert "Yes." in body
    assert "Hm, hm" not in body
    fill_session(session)
    scripted.script(Reply(text="They spoke of a trip to Lisbon, and of the weather in May."))
    assert compact_now(session.pk, trigger="manual").status == "applied"
    assert "Hm, hm" not in scripted.requests[-1].body.decode()


@pytest.mark.parametrize(("option", "text"), [({}, "Yes."), ({"has_tagged_thoughts": True}, "")])
def test_thoughts_in_tags_come_back_where_the_model_wants_them(
    option: Body, text: str, session: Session, scripted: ScriptedModel
) -> None:
    written = "<think>Hm, hm.</think>Yes."
    Provider.objects.update(options={"dialect": option})
    scripted.script(Reply(text=written))
    say(session)
    say(session)
    sent = scripted.requests[-1].json["messages"]
    [answer] = [each["content"] for each in sent if each["role"] == "assistant"]
    assert answer == (text or written)

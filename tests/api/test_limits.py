"""Limits of requests, and bodies that are not JSON."""

import base64
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx2
import pytest
import time_machine
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connections
from knox.models import AuthToken
from rest_framework.test import APIClient

from chatcore.base.rest import turn_rate
from chatcore.base.rest.problems import Problem
from chatcore.models import Message, Session
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.anthropic_client import speak_anthropic
from tests.support.client_tool_requests import WEATHER, asking
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def messages(session: Session) -> str:
    cache.clear()
    return f"/api/v1/sessions/{session.pk}/messages"


def test_more_turns_a_minute_than_allowed_are_429_until_the_minute_is_over(
    api: APIClient,
    as_user: Callable[[User], APIClient],
    messages: str,
    settings: object,
    scripted: ScriptedModel,
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 2}  # type: ignore[attr-defined]
    scripted.default = Reply(text="Yes.")
    with time_machine.travel("2026-11-20T12:00:00Z", tick=False) as clock:
        assert [api.post(messages, {"content": "Hi"}).status_code for _ in range(2)] == [201, 201]
        clock.shift(20)
        refusal = api.post(messages, {"content": "Hi"})
        assert (refusal.status_code, refusal.json()["type"], refusal["Retry-After"]) == (
            429,
            "too_many_turns",
            "40",
        )
        bob = User.objects.create_user("bob")
        Session.objects.update(owner=bob)
        assert as_user(bob).post(messages, {"content": "Hi"}).status_code == 201
        Session.objects.update(owner=User.objects.get(username="alice"))
        clock.shift(41)
        assert api.post(messages, {"content": "Hi"}).status_code == 201


@pytest.mark.parametrize("action", ["send", "edit", "regenerate"])
def test_a_repeated_key_is_answered_as_ever_and_not_counted(
    api: APIClient, messages: str, settings: object, scripted: ScriptedModel, action: str
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 2}  # type: ignore[attr-defined]
    scripted.default = Reply(text="Yes.")
    begun = api.post(messages, {"content": "Hi"}, headers={"Idempotency-Key": "first"})
    question, answer = api.get(messages).json()["results"]
    send, address, body = {
        "send": (api.post, messages, {"content": "More"}),
        "edit": (api.patch, f"/api/v1/messages/{question['id']}", {"content": "Hello"}),
        "regenerate": (api.post, f"/api/v1/messages/{answer['id']}/regenerate", {}),
    }[action]
    answers = [send(address, body, headers={"Idempotency-Key": "k"}) for _ in range(5)]
    assert [each.status_code for each in (begun, *answers)] == [201] * 6
    assert len({each.json()["turn"] for each in answers}) == 1
    assert send(address, body, headers={"Idempotency-Key": "new"}).status_code == 429
    assert send(address, body, headers={"Idempotency-Key": "k"}).status_code == 201


def test_repeated_results_of_tools_are_answered_as_ever_and_not_counted(
    api: APIClient, messages: str, settings: object, scripted: ScriptedModel
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 1}  # type: ignore[attr-defined]
    scripted.script(Reply(tool_calls=(asking("Rome", id="a"), asking("Oslo", id="b"))))
    scripted.default = Reply(text="Sunny.")
    api.post(messages, {"content": "Hi", "tools": [WEATHER]})
    address = messages.replace("/messages", "/tool_results")
    one, both = (
        [{"tool_call_id": name, "content": "Sunny."} for name in ids] for ids in ("a", "ab")
    )
    for results, status in ((one, "waiting"), (both, "completed")):
        answers = [api.post(address, {"results": results}) for _ in range(4)]
        assert {answer.status_code for answer in answers} <= {200, 201}
        assert {answer.json()["status"] for answer in answers} == {status}
    assert api.post(messages, {"content": "Hi"}).status_code == 429


TOO_LONG = (
    "The newest message alone has about 10,000 tokens; scripted/test-model takes at most 8,192."
    " Shorten it or choose a model with a larger window."
)
LONG = "x" * 40_000


@pytest.mark.parametrize("size", [10_000, 300_000])
@pytest.mark.parametrize("policy", ["oneclaw", "chatcore"])
def test_a_text_that_is_too_long_is_sent_as_the_refusal_says(
    api: APIClient, messages: str, scripted: ScriptedModel, policy: str, size: int
) -> None:
    Session.objects.update(policy=policy)
    text = "word " * size
    refusal = api.post(messages, {"content": text})
    assert refusal.status_code == 413
    assert '{"name": "text.txt", "data": BASE64}' in refusal.json()["detail"]
    file = {"name": "text.txt", "data": base64.b64encode(text.encode()).decode()}
    sent = api.post(messages, {"content": "Sum it up.", "attachments": [file]})
    assert sent.status_code == 201, sent.json()
    assert "word word" in str(scripted.requests[-1].json)


@pytest.mark.parametrize("policy", ["oneclaw", "lota", "chatcore"])
def test_a_message_alone_larger_than_the_window_is_413_and_sent_nowhere(
    api: APIClient, messages: str, scripted: ScriptedModel, policy: str
) -> None:
    Session.objects.update(policy=policy)
    refusal = api.post(messages, {"content": LONG})
    problem = refusal.json()
    assert (refusal.status_code, problem["type"]) == (413, "context_budget_exceeded")
    assert TOO_LONG.partition("; ")[2] in problem["detail"]
    assert "/attachments" in problem["detail"]
    assert Message.objects.get().pk == problem["user_message"]
    assert scripted.requests == []
    assert api.post(messages, {"content": "Shorter."}).status_code == 201


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", {"messages": [{"role": "user", "content": LONG}]}),
        ("messages", {"max_tokens": 99, "messages": [{"role": "user", "content": LONG}]}),
        ("responses", {"input": LONG, "store": False}),
        ("responses", {"input": LONG}),
    ],
    ids=["chat", "messages", "responses", "stored-response"],
)
@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_every_compatible_api_refuses_it_in_the_same_words(
    api: APIClient, model: AiModel, scripted: ScriptedModel, path: str, body: object, protocol: str
) -> None:
    if protocol == "anthropic":
        speak_anthropic(scripted)
    # The form that clients of these protocols know: 400, with a code or words of its own.
    assert isinstance(body, dict)
    refusal = api.post(f"/v1/{path}", {"model": "scripted/test-model", **body})
    error = refusal.json()["error"]
    assert (refusal.status_code, TOO_LONG in error["message"]) == (400, True)
    assert error.get("code", "context_length_exceeded") == "context_length_exceeded"
    assert scripted.requests == []


def test_turns_begun_at_once_are_all_counted(
    api: APIClient, messages: str, user: User, model: AiModel, settings: object
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 4}  # type: ignore[attr-defined]
    others = [Session.objects.create(owner=user, model=model).pk for _ in range(8)]

    def begin(session: object) -> int:
        try:
            return int(
                api.post(f"/api/v1/sessions/{session}/messages", {"content": "Hi"}).status_code
            )
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(begin, others)) == [201] * 4 + [429] * 4


def test_a_limit_that_is_partly_counted_in_memory_is_kept_exactly(
    user: User, settings: object
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 30}  # type: ignore[attr-defined]
    request = SimpleNamespace(user=user)
    for _ in range(30):
        turn_rate.count_turn(request)
    with pytest.raises(Problem) as refusal:
        turn_rate.count_turn(request)
    assert refusal.value.status_code == 429


def test_what_another_process_has_counted_counts(user: User, settings: object) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 30}  # type: ignore[attr-defined]
    request, counts = SimpleNamespace(user=user), 0
    for _ in range(2):
        turn_rate.forget_turns()  # as a process that has just begun
        for _ in range(20):
            try:
                turn_rate.count_turn(request)
            except Problem:
                break
            counts += 1
    assert 30 - 3 <= counts <= 30 + 3, "a tenth of the limit is counted in memory"


def test_sixty_turns_a_minute_are_allowed_by_default(settings: object) -> None:
    assert settings.CHATCORE["TURNS_PER_MINUTE"] == 60  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [2 * 1024 * 1024 + 1, 52 * 1024 * 1024])
def test_a_body_over_two_megabytes_is_413(api: APIClient, messages: str, size: int) -> None:
    refusal = api.post(
        messages, '{"content":"' + "x" * size + '"}', content_type="application/json"
    )
    assert (refusal.status_code, refusal["Content-Type"]) == (413, "application/problem+json")


@pytest.mark.parametrize(
    ("size", "status"), [(10, 201), (3 * 1024 * 1024, 413), (60 * 1024 * 1024, 413)]
)
def test_a_body_sent_in_chunks_is_read_up_to_the_same_limit(
    live: Live, user: User, size: int, status: int
) -> None:
    piece = b"x" * min(size, 65_536)
    chunks = [b'{"system_prompt":"', *[piece] * (size // len(piece)), b'"}']
    headers = {
        "Authorization": f"Bearer {AuthToken.objects.create(user)[1]}",
        "Content-Type": "application/json",
    }
    with httpx2.Client(base_url=live.url, headers=headers, timeout=30) as client:
        answer = client.post("/api/v1/sessions", content=iter(chunks))
        assert answer.status_code == status
        assert status != 201 or answer.json()["system_prompt"] == "x" * size
        assert client.get("/api/v1/sessions").status_code == 200


def test_an_import_may_have_more(api: APIClient, messages: str) -> None:
    body = {"messages": [{"role": "user", "content": "x" * 200_000}] * 12}
    assert api.post(f"{messages}/import", body).status_code == 201


def test_an_import_over_fifty_megabytes_is_413(api: APIClient, messages: str) -> None:
    body = '{"messages": [' + " " * (50 * 1024 * 1024) + "]}"
    assert api.post(f"{messages}/import", body, content_type="application/json").status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        '{"content":',
        "NaN",
        '{"content": NaN}',
        '{"content": 1e400}',
        "\xff".encode("latin-1"),
        "[" * 100_000,
    ],
)
def test_what_is_no_json_is_400(api: APIClient, messages: str, body: str | bytes) -> None:
    refusal = api.post(messages, body, content_type="application/json")
    assert (refusal.status_code, refusal.json()["type"]) == (400, "parse_error")


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""],
)
def test_another_content_type_than_json_is_415(api: APIClient, messages: str, kind: str) -> None:
    refusal = api.generic("POST", messages, json.dumps({"content": "Hi"}), content_type=kind)
    assert (refusal.status_code, refusal["Content-Type"]) == (415, "application/problem+json")


def test_a_method_that_is_not_there_is_405(api: APIClient, messages: str) -> None:
    refusal = api.put(messages, {})
    assert (refusal.status_code, refusal["Content-Type"], refusal["Allow"]) == (
        405,
        "application/problem+json",
        "GET, POST, HEAD, OPTIONS",
    )

"""A budget sees each call from its beginning on, whoever leaves before its end."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.contrib.budgets.models import Budget, UsageSum
from chatcore.models import Session, Turn
from chatcore.providers.base import ToolCall
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.openai_client import HELLO, MODEL, create_key
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

# It would go on for a minute, but for the client that leaves.
ENDLESS = Reply(chunks=[f"number {number} " for number in range(300)], chunk_delay=0.2)
COUNTED = Reply(text="Hello.", usage=(1_000, 100))  # 0.0035 by the prices below
PER_CALL = Decimal("0.0035")
CALL = ToolCall(id="c", name="current_time", arguments="{}")
BY_HAND = {"prompt": "Once", "model": MODEL, "stream": True}
STREAMS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": MODEL, "messages": HELLO, "stream": True},
    "/v1/responses": {"model": MODEL, "input": "Hello?", "stream": True, "store": False},
    "/v1/messages": {"model": MODEL, "messages": HELLO, "stream": True, "max_tokens": 9_000},
    "/v1/completions": BY_HAND,
}


@pytest.fixture(autouse=True)
def budget(user: User, model: AiModel) -> Budget:
    AiModel.objects.update(input_price="2.5", output_price=10)
    return Budget.objects.create(user=user, amount="0.01")


@pytest.fixture
def client(live: Live, user: User) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {create_key(user)}"}
    with httpx2.Client(base_url=live.url, headers=headers, timeout=60) as client:
        yield client


def read_budget(api: APIClient) -> dict[str, Any]:
    state: dict[str, Any] = api.get("/api/v1/usage").json()["budgets"][0]
    return state


def build_events(*texts: str, usage: dict[str, int] | None = None) -> Reply:
    """Return a stream of completions of a prompt, which is passed on as it comes."""
    events: list[dict[str, Any]] = [{"choices": [{"text": text, "index": 0}]} for text in texts]
    events += [{"choices": [], "usage": usage}] if usage else []
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    body = "".join([*lines, "data: [DONE]\n\n"]).encode()
    return Reply(body=body, headers={"Content-Type": "text/event-stream"})


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_that_is_closed_early_is_charged_for_what_came(
    client: httpx2.Client, api: APIClient, scripted: ScriptedModel, path: str
) -> None:
    is_passed_on = path == "/v1/completions"
    scripted.script(build_events(*["many words " * 50] * 5_000) if is_passed_on else ENDLESS)
    with client.stream("POST", path, json=STREAMS[path]) as response:
        assert response.status_code == 200, response.read()
        chunks = response.iter_bytes(100)
        next(chunks)
        if not is_passed_on:  # that answer comes in one piece
            # Responses say that they are created before a model is called.
            wait_until(lambda: read_budget(api)["is_spent"], what="what runs now is held")
    wait_until(lambda: UsageSum.objects.filter(unpriced_calls=1).exists())
    row = UsageSum.objects.get()
    assert (row.calls, row.cost_units) == (1, 0)
    total = api.get("/api/v1/usage").json()["total"]
    assert total["estimated_cost"] > 0
    state = read_budget(api)
    assert state["cost"] == total["estimated_cost"]
    if not is_passed_on:
        assert not state["is_spent"]


def test_a_stopped_answer_of_a_chat_is_charged_for_what_came(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(ENDLESS)
    url = f"/api/v1/sessions/{session.pk}/messages"
    sent = api.post(url, {"content": "Hi"}, headers={"Prefer": "respond-async"})
    assert sent.status_code == 202, sent.json()
    wait_until(lambda: scripted.requests)
    wait_until(lambda: read_budget(api)["is_spent"])
    api.post(f"/api/v1/sessions/{session.pk}/cancel")
    wait_until(lambda: Turn.objects.get().status == Turn.Status.CANCELLED)
    row = UsageSum.objects.get()
    assert (row.calls, row.unpriced_calls, row.session) == (1, 1, session.pk)
    assert 0 < read_budget(api)["cost"] < 0.01


def test_a_stream_of_completions_costs_what_its_provider_counted(
    client: httpx2.Client, scripted: ScriptedModel
) -> None:
    scripted.script(
        build_events("a time", usage={"prompt_tokens": 1_000, "completion_tokens": 100})
    )
    client.post("/v1/completions", json=BY_HAND)
    row = UsageSum.objects.get()
    assert (row.cost, row.unpriced_calls, row.estimated_units) == (PER_CALL, 0, 0)


def test_an_uncounted_stream_of_completions_is_estimated_by_its_text(
    client: httpx2.Client, api: APIClient, scripted: ScriptedModel
) -> None:
    scripted.script(build_events(*["word" for _ in range(400)]))  # 400 tokens
    client.post("/v1/completions", json=BY_HAND)
    total = api.get("/api/v1/usage").json()["total"]
    assert (total["unpriced_calls"], total["cost"]) == (1, 0)
    assert total["estimated_cost"] == pytest.approx(0.004, rel=0.01)


def test_a_refusal_of_the_provider_costs_nothing(
    client: httpx2.Client, api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(*[Reply(status=400, text="no") for _ in range(3)])
    for path in ("/v1/chat/completions", "/v1/completions"):
        assert client.post(path, json=STREAMS[path]).status_code >= 400
    failed = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"})
    assert failed.status_code >= 400
    total = api.get("/api/v1/usage").json()["total"]
    assert (total["calls"], total["estimated_cost"]) == (0, 0)


def ask_statelessly(client: httpx2.Client, _number: int) -> int:
    body = {"model": MODEL, "messages": HELLO}
    return client.post("/v1/chat/completions", json=body).status_code


def ask_in_chats(client: httpx2.Client, number: int) -> int:
    headers = {"X-Session-Id": f"chat-{number}"}
    body = {"model": MODEL, "messages": HELLO}
    return client.post("/v1/chat/completions", json=body, headers=headers).status_code


def ask_for_embeddings(client: httpx2.Client, _number: int) -> int:
    body = {"model": MODEL, "input": "many words " * 2_000}
    return client.post("/v1/embeddings", json=body).status_code


@pytest.mark.parametrize("ask", [ask_statelessly, ask_in_chats, ask_for_embeddings])
def test_calls_at_once_spend_at_most_one_call_more(
    client: httpx2.Client,
    api: APIClient,
    settings: Any,
    scripted: ScriptedModel,
    ask: Callable[[httpx2.Client, int], int],
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_AT_ONCE_PER_USER": 50}
    embeddings = {"object": "list", "data": [], "usage": {"prompt_tokens": 1_400}}
    is_chat = ask is not ask_for_embeddings
    scripted.default = COUNTED if is_chat else Reply(body=json.dumps(embeddings).encode())
    with ThreadPoolExecutor(25) as threads:
        statuses = list(threads.map(lambda number: ask(client, number), range(25)))
    assert set(statuses) == {200, 429}
    wait_until(lambda: not UsageSum.objects.exclude(estimated_units=0).exists())
    spent = sum(row.cost for row in UsageSum.objects.all())
    assert 0 < spent < Decimal("0.01") + PER_CALL
    assert read_budget(api)["cost"] == pytest.approx(float(spent))


def test_an_answer_that_has_begun_ends_although_its_tools_spend_the_budget(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=[CALL], usage=(10_000, 10)), Reply(text="Noon.", usage=(10, 1))
    )
    answer = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "The time?"})
    assert answer.status_code == 201, answer.json()
    assert answer.json()["assistant_message"]["content"] == "Noon."
    assert read_budget(api)["is_spent"]


def test_who_comes_while_the_rest_is_held_is_told_to_come_back_soon(
    client: httpx2.Client, scripted: ScriptedModel
) -> None:
    scripted.script(ENDLESS)
    body = {"model": MODEL, "messages": HELLO}
    with client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as response:
        chunks = response.iter_bytes(100)
        next(chunks)
        refused = client.post("/v1/chat/completions", json=body)
    assert refused.status_code == 429
    assert "for answers that are being written" in refused.json()["error"]["message"]
    assert 0 < int(refused.headers["Retry-After"]) <= 30

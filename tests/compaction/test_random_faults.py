"""Whatever a provider fails with, and whenever: the chat goes on, is as it was, and says so."""

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from rest_framework.test import APIClient

from chatcore.models import Message, Session, SessionEvent
from compaction.models import CompactionRun
from compaction.runs import engine, leases
from models_registry.models import Provider
from tests.support.compaction_sessions import SUMMARY, fill_session, use_anthropic
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

Body = dict[str, Any]
FACT = "The locker of Hanna has the number 4711."
KEY = "sk-proj-Zx9verysecretkey4711abcdEFGH"
TRACE = 'Traceback (most recent call last):\n  File "/srv/main.py", line 42\n    raise\nValueError'
STREAM = {"Content-Type": "text/event-stream"}
STATUSES = [400, 402, 403, 404, 408, 409, 413, 418, 422, 424, 429, 451, 500, 502, 503, 520, 529]
WORDS = [
    "Nein.",
    "",
    "不支持的请求，请检查参数。",
    f"Not with {KEY}.",
    TRACE,
    "La respuesta es larga.",
]
HEADERS = [{}, {"Retry-After": "3"}, {"Retry-After": "0"}, {"Retry-After": "abc"}]
BODIES: list[Callable[[str], bytes]] = [
    lambda words: json.dumps({"error": {"message": words}}).encode(),
    lambda words: json.dumps({"detail": [{"msg": words}]}).encode(),
    lambda words: f"<html><body>{words}</body></html>".encode(),
    lambda words: words.encode(),
]
IN_ANSWERS: list[Callable[[str], Reply]] = [
    lambda words: Reply(text="Alice plans a trip to Lisbon in May.", cut_after=2),
    lambda words: Reply(text="Alice plans a trip", finish=None),
    lambda words: Reply(text=""),
    lambda words: Reply(text="", finish="refusal"),
    lambda words: Reply(body=b"", headers=STREAM),
    lambda words: Reply(body=b"data: {no\n\ndata: [DONE]\n\n", headers=STREAM),
    lambda words: Reply(body=json.dumps({"error": {"message": words}}).encode()),
    lambda words: Reply(
        body=f"event: error\ndata: {json.dumps({'type': 'error', 'error': {'message': words}})}"
        "\n\n".encode(),
        headers=STREAM,
    ),
]


def choose_fault(source: random.Random) -> Reply:
    words = source.choice(WORDS)
    if source.randrange(2):
        return source.choice(IN_ANSWERS)(words)
    body = source.choice(BODIES)(words)
    return Reply(status=source.choice(STATUSES), body=body, headers=source.choice(HEADERS))


def is_summary(body: Body) -> bool:
    return "<transcript>" in str(body["messages"])


def answer(body: Body) -> Reply:
    if not is_summary(body):
        return Reply(text="I would look for flights from Porto.")
    return Reply(text=f"{SUMMARY}\n{FACT}" if FACT in str(body["messages"]) else SUMMARY)


def list_repeated(scripted: ScriptedModel, start: int) -> list[int]:
    """Return how often each summary call was made since a request."""
    bodies = [str(call.json) for call in scripted.requests[start:] if is_summary(call.json)]
    return [count for count in Counter(bodies).values() if count > 1]


@pytest.mark.parametrize("number", range(24))
def test_a_fault_is_over_when_it_is_over(
    number: int,
    session: Session,
    api: APIClient,
    scripted: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = random.Random(number)
    monkeypatch.setattr(leases, "wait_while_claimed", lambda run, wait, **_: None)
    if source.randrange(2):
        use_anthropic(session, scripted)
    provider = Provider.objects.get()
    provider.api_key, provider.timeout_seconds = KEY, 4
    provider.save()
    params = {"temperature": 0.4, "max_tokens": 900}
    policy = source.choice(["oneclaw", "chatcore"])
    Session.objects.filter(pk=session.pk).update(policy=policy, params=params)
    fill_session(session)
    Message.objects.filter(session=session, seq=1).update(content=f"{FACT} " + "lisbon trip " * 160)
    fault, only_summaries = choose_fault(source), bool(source.randrange(2))
    scripted.default = lambda body: (
        answer(body) if only_summaries and not is_summary(body) else fault
    )
    path = f"/api/v1/sessions/{session.pk}"
    texts: list[str] = []
    for round_number in range(3):
        start = len(scripted.requests)
        said = api.post(f"{path}/messages", {"content": "And the flight?"})
        assert not only_summaries or said.json()["status"] == "completed"
        run = api.post(f"{path}/compact", {"wait": True})
        texts += [said.content.decode(), run.content.decode()]
        if round_number and fault.status == 200:
            assert not list_repeated(scripted, start)
        session.refresh_from_db()
        fill_session(session, messages=4)

    scripted.default = answer
    resting_runs = CompactionRun.objects.filter(status="queued")
    resting_runs.update(lease_until=Now() - timedelta(seconds=1))
    engine.execute_next_run(lambda _: None)
    assert api.post(f"{path}/compact", {"wait": True}).json()["status"] in ("applied", "skipped")
    said = api.post(f"{path}/messages", {"content": "And the locker of Hanna?"})
    assert said.json()["status"] == "completed"
    request = next(
        call.json for call in reversed(scripted.requests) if "locker of Hanna?" in str(call.json)
    )
    assert FACT in str(request)
    assert {name: request[name] for name in params} == params
    events = SessionEvent.objects.filter(session=session).values_list("data", flat=True)
    texts += [api.get(f"{path}/compactions").content.decode(), json.dumps([*events], default=str)]
    assert not [text for text in texts if "verysecret" in text or "Traceback" in text]

"""A client whose answer is delayed gets the status and a heartbeat every HEARTBEAT_SECONDS."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx2
import pytest
from django.contrib.auth.models import User

from chatcore.events import log as event_log
from chatcore.events.types import EventType
from chatcore.models import Session
from chatcore.turns import capacity, recorder
from compaction.summaries import model_calls
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_event_names,
    summarize_or_chat,
)
from tests.support.openai_client import MODEL, create_key
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply, split_pieces
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

HEARTBEAT_SECONDS = 0.8
EVENT_SECONDS = 0.2  # between two events of the session
NO_FIELDS: dict[str, Any] = {}
SAYS = [{"role": "user", "content": "And what about the flight?"}]
ANSWER = "I would look for flights from Porto."
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": SAYS},
    "/v1/messages": {"messages": SAYS, "max_tokens": 100},
    "/v1/responses": {"input": SAYS},
}
COMPACTING: dict[str, dict[str, Any]] = {
    "/v1/messages": {"context_management": {"edits": [{"type": "compact_20260112"}]}},
    "/v1/responses": {"context_management": [{"type": "compaction", "compact_threshold": 2000}]},
}
HEARTBEATS = dict.fromkeys(BODIES, ": waiting") | {"/v1/messages": "event: ping"}


class Streamed(NamedTuple):
    """The lines of a stream before the first word of the answer, and all of its text."""

    status: int
    early_lines: list[str]
    text: str


@pytest.fixture(autouse=True)
def short_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "HEARTBEAT_SECONDS", HEARTBEAT_SECONDS)
    monkeypatch.setattr(model_calls, "REPORT_SECONDS", EVENT_SECONDS)
    monkeypatch.setattr(recorder, "TELL_SECONDS", EVENT_SECONDS)


def build_headers(user: User, session: Session) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {create_key(user)}",
        "X-Session-Id": str(session.pk),
        "X-Session-On-Divergence": "append",
    }


def stream(
    live: Live, user: User, session: Session, path: str, fields: Mapping[str, Any] = NO_FIELDS
) -> Streamed:
    body = {"model": MODEL, "stream": True, **BODIES[path], **fields}
    headers = build_headers(user, session)
    with httpx2.stream(
        "POST", f"{live.url}{path}", json=body, headers=headers, timeout=60
    ) as response:
        lines = list(response.iter_lines())
    first_word = next(
        (number for number, line in enumerate(lines) if "I would" in line), len(lines)
    )
    return Streamed(response.status_code, lines[:first_word], "\n".join(lines))


@pytest.mark.parametrize("policy", ["oneclaw", "chatcore"])
@pytest.mark.parametrize("path", BODIES)
def test_a_summary_before_the_answer_does_not_silence_the_stream(
    live: Live, user: User, session: Session, scripted: ScriptedModel, path: str, policy: str
) -> None:
    Session.objects.filter(pk=session.pk).update(policy=policy)
    slow_summary = Reply(chunks=split_pieces(SUMMARY, 20), chunk_delay=EVENT_SECONDS)
    scripted.default = summarize_or_chat(summary=slow_summary, chat=Reply(text=ANSWER))
    fill_session(session, messages=20)
    streamed = stream(live, user, session, path)
    names = list_event_names(session)
    assert names.count(EventType.COMPACTION_PROGRESS) > 3
    assert EventType.COMPACTION_APPLIED in names
    assert (streamed.status, streamed.early_lines.count(HEARTBEATS[path]) >= 2) == (200, True)
    assert "flights" in streamed.text


@pytest.mark.parametrize("path", BODIES)
def test_a_model_that_reads_for_long_does_not_silence_the_stream(
    live: Live, user: User, model: AiModel, session: Session, scripted: ScriptedModel, path: str
) -> None:
    model.provider.options = {"tells_reading": True}
    model.provider.save()
    steps = [(0, read, 400) for read in range(0, 401, 25)]
    scripted.default = Reply(text=ANSWER, reading=steps, chunk_delay=EVENT_SECONDS)
    streamed = stream(live, user, session, path)
    assert list_event_names(session).count(EventType.TURN_READING) > 3
    assert (streamed.status, streamed.early_lines.count(HEARTBEATS[path]) >= 2) == (200, True)


@pytest.mark.parametrize("path", COMPACTING)
def test_a_compaction_that_the_client_asks_for_does_not_silence_the_stream(
    live: Live, user: User, session: Session, scripted: ScriptedModel, path: str
) -> None:
    slow_summary = Reply(chunks=split_pieces(SUMMARY, 20), chunk_delay=EVENT_SECONDS)
    scripted.default = summarize_or_chat(summary=slow_summary, chat=Reply(text=ANSWER))
    fill_session(session, messages=14)
    streamed = stream(live, user, session, path, COMPACTING[path])
    assert (streamed.status, streamed.early_lines[0]) == (200, ": waiting")
    assert streamed.early_lines.count(": waiting") >= 2
    assert EventType.COMPACTION_APPLIED in list_event_names(session)
    assert '"type":"compaction"' in "\n".join(streamed.early_lines)
    assert "flights" in streamed.text


@pytest.mark.parametrize("path", COMPACTING)
def test_a_client_that_leaves_during_its_compaction_gets_no_answer(
    live: Live, user: User, session: Session, scripted: ScriptedModel, path: str
) -> None:
    slow_summary = Reply(chunks=split_pieces(SUMMARY, 20), chunk_delay=EVENT_SECONDS)
    endless = Reply(chunks=["word "] * 3000, chunk_delay=EVENT_SECONDS)
    scripted.default = summarize_or_chat(summary=slow_summary, chat=endless)
    fill_session(session, messages=14)
    body = {"model": MODEL, "stream": True, **BODIES[path], **COMPACTING[path]}
    with httpx2.stream(
        "POST",
        f"{live.url}{path}",
        json=body,
        headers=build_headers(user, session),
        timeout=60,
    ) as response:
        assert next(response.iter_lines()) == ": waiting"
    wait_until(lambda: session.turns.filter(status="cancelled").exists(), what="the answer's end")
    wait_until(lambda: capacity.count_answers() == 0, what="the place to be given back")


def test_a_message_begins_before_its_first_ping(
    live: Live, user: User, session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(text=ANSWER, delay=3 * HEARTBEAT_SECONDS)
    lines = stream(live, user, session, "/v1/messages").early_lines
    names = [line for line in lines if line.startswith("event: ")]
    assert names[:2] == ["event: message_start", "event: ping"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_refusal_before_the_first_heartbeat_is_the_status(
    live: Live, user: User, session: Session, scripted: ScriptedModel, path: str
) -> None:
    scripted.default = Reply(status=401, text="no such key")
    assert stream(live, user, session, path).status == 502
    scripted.default = Reply(text=ANSWER)
    body = {"model": MODEL, "stream": True, **BODIES[path]}
    body["messages"] = [{"role": "user", "content": "x" * 40_000}]
    headers = build_headers(user, session)
    answer = httpx2.post(f"{live.url}{path}", json=body, headers=headers, timeout=60)
    assert (answer.status_code, "newest message alone" in answer.text) == (400, True)


def test_a_failure_after_the_first_heartbeat_is_an_event(
    live: Live, user: User, session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(status=401, text="no such key", delay=2 * HEARTBEAT_SECONDS)
    streamed = stream(live, user, session, "/v1/chat/completions")
    assert streamed.status == 200
    assert streamed.early_lines[0] == ": waiting"
    assert '"code":"provider_auth"' in streamed.text


def test_a_stream_that_is_passed_on_has_heartbeats_between_its_events(
    live: Live, user: User, session: Session, scripted: ScriptedModel
) -> None:
    body = {"model": MODEL, "prompt": "Once", "stream": True}
    scripted.default = Reply(
        text=ANSWER, delay=2 * HEARTBEAT_SECONDS, chunk_delay=0.1, bytes_per_write=7
    )
    answer = httpx2.post(
        f"{live.url}/v1/completions",
        json=body,
        headers=build_headers(user, session),
        timeout=60,
    )
    blocks = answer.text.split("\n\n")
    assert blocks[0] == ": waiting"
    assert {block.partition(":")[0] for block in blocks if block} == {"", "data"}

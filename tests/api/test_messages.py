"""Messages over REST: pages of the history, and a turn whose end the request waits for."""

import base64
import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from models_registry.models import AiModel
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def messages(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}/messages"


def fill(session: Session, count: int) -> None:
    Message.objects.bulk_create(
        Message(session=session, seq=seq, role="user", content=f"{seq}")
        for seq in range(1, count + 1)
    )
    Session.objects.filter(pk=session.pk).update(last_seq=count, message_count=count)


def test_a_message_is_answered_in_the_same_response(
    api: APIClient, messages: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Hello, Alice.", usage=(12, 5)))
    answer = api.post(messages, {"content": "Hi"})
    assert answer.status_code == 201
    body = answer.json()
    assert (body["user_message"]["content"], body["assistant_message"]["content"]) == (
        "Hi",
        "Hello, Alice.",
    )
    assert (
        body["assistant_message"]["token_count_input"],
        body["assistant_message"]["token_count_output"],
    ) == (12, 5)
    assert (body["tool_messages"], body["notices"]) == ([], [])


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="Lisbon is sunny. \x00", usage=(1_234, 56)),
        Reply(chunks=["Rain. "] * 3, reasoning="Think of clouds.", finish="length"),
        Reply(text="Free.", usage=False),
    ],
)
def test_the_reply_has_what_a_reader_gets(
    reply: Reply, api: APIClient, messages: str, scripted: ScriptedModel, model: AiModel
) -> None:
    """It is built from what was just stored, so nothing may look otherwise when it is read."""
    AiModel.objects.update(input_price="0.15", output_price="1.1")
    for _ in range(2):
        scripted.script(reply)
        body = api.post(messages, {"content": "The weather? \x00"}).json()
    *_, question, answer = api.get(messages).json()["results"]
    assert (body["user_message"], body["assistant_message"]) == (question, answer)
    assert (body["status"], body["tool_messages"], body["notices"]) == ("completed", [], [])


def test_the_results_of_tools_come_with_the_answer(
    api: APIClient, messages: str, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=(make_tool_call("calculate", {"expression": "6*7"}),)), Reply(text="42.")
    )
    body = api.post(messages, {"content": "What is 6*7?"}).json()
    assert [message["tool_name"] for message in body["tool_messages"]] == ["calculate"]
    assert body["assistant_message"]["content"] == "42."


def test_a_message_shows_exactly_the_fields_of_the_contract(
    api: APIClient, messages: str, session: Session
) -> None:
    fill(session, 1)
    names = (
        "id seq role content tool_calls tool_call_id tool_name is_error reasoning attachments "
        "status model pinned token_count_input token_count_output token_count_cache_read "
        "token_count_cache_write cost token_estimate original_chars replaces versions superseded "
        "compacted context_trimmed created_at finish_reason finish_detail"
    )
    assert set(api.get(messages).json()["results"][0]) == set(names.split())


@pytest.mark.lasting
@pytest.mark.parametrize(
    ("reply", "status", "kind"),
    [
        (Reply(status=401), 502, "provider_auth"),
        (Reply(status=500), 502, "provider_unavailable"),
        (Reply(status=200, body=b"<html>Bad gateway</html>"), 502, "provider_unavailable"),
        (Reply(status=429, headers={"Retry-After": "7"}), 503, "provider_rate_limited"),
    ],
)
def test_a_provider_failure_is_a_problem_and_the_message_stays(
    api: APIClient, messages: str, scripted: ScriptedModel, reply: Reply, status: int, kind: str
) -> None:
    scripted.default = reply
    failed = api.post(messages, {"content": "Hi"})
    assert (failed.status_code, failed.json()["type"], failed["Content-Type"]) == (
        status,
        kind,
        "application/problem+json",
    )
    stored = Message.objects.get()
    assert (stored.content, stored.pk) == ("Hi", failed.json()["user_message"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": ""}, "content"),
        ({"content": " \t\n"}, "content"),
        ({"attachments": []}, "content"),
        ({"content": 5}, "content"),
        ({"content": None}, "content"),
        ({"content": ["Hi"]}, "content"),
        ({"content": "Hi", "stream": "yes"}, "stream"),
        ({"content": "Hi", "role": "system"}, "role"),
        (["Hi"], ""),
    ],
)
def test_a_wrong_body_is_refused_by_the_name_of_its_field(
    api: APIClient, messages: str, body: Any, field: str
) -> None:
    refusal = api.post(messages, body)
    assert refusal.status_code == 400
    assert [error["field"] for error in refusal.json()["errors"]] == [field]
    assert not Message.objects.exists()


def test_a_file_may_be_all_that_is_said(
    api: APIClient, messages: str, session: Session, scripted: ScriptedModel
) -> None:
    note = {"name": "note.txt", "data": base64.b64encode(b"Buy tea.").decode()}
    user_message = api.post(messages, {"content": "  ", "attachments": [note]}).json()[
        "user_message"
    ]
    assert (user_message["content"], [file["name"] for file in user_message["attachments"]]) == (
        "",
        ["note.txt"],
    )
    assert "Buy tea." in json.dumps(scripted.requests[-1].json)
    session.refresh_from_db()
    assert session.title == "note.txt"


def test_a_message_over_256_kb_is_413(api: APIClient, messages: str) -> None:
    refusal = api.post(messages, {"content": "é" * (128 * 1024) + "x"})
    assert (refusal.status_code, refusal.json()["type"]) == (413, "too_large")


def test_a_session_without_a_usable_model_is_409(
    api: APIClient, messages: str, session: Session
) -> None:
    Session.objects.update(model=None)
    AiModel.objects.update(is_active=False)
    refusal = api.post(messages, {"content": "Hi"})
    assert (refusal.status_code, refusal.json()["type"]) == (409, "no_model")


def test_pages_go_both_ways_in_either_order(
    api: APIClient, messages: str, session: Session
) -> None:
    fill(session, 7)
    for order, expected in (("asc", [1, 2, 3, 4, 5, 6, 7]), ("desc", [7, 6, 5, 4, 3, 2, 1])):
        page = api.get(f"{messages}?order={order}&limit=3").json()
        assert page["previous"] is None
        pages = [page]
        while page["next"]:
            page = api.get(page["next"]).json()
            pages.append(page)
        assert [row["seq"] for page in pages for row in page["results"]] == expected
        assert api.get(page["previous"]).json()["results"] == pages[1]["results"]
        first = api.get(pages[1]["previous"]).json()
        assert (first["results"], first["previous"]) == (pages[0]["results"], None)


def test_pages_do_not_shift_under_inserts(api: APIClient, messages: str, session: Session) -> None:
    fill(session, 4)
    page = api.get(f"{messages}?order=desc&limit=2").json()
    Message.objects.create(session=session, seq=5, role="user", content="5")
    rest = api.get(page["next"]).json()
    assert [row["seq"] for row in page["results"] + rest["results"]] == [4, 3, 2, 1]


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=101", "limit=x", "limit=-1", "cursor=%21", "cursor=WzAsICJ4Il0", "order=up"],
)
def test_a_wrong_parameter_is_refused_by_its_name(
    api: APIClient, messages: str, query: str
) -> None:
    refusal = api.get(f"{messages}?{query}")
    assert refusal.status_code == 400
    assert refusal.json()["errors"][0]["field"] == query.partition("=")[0]


def test_messages_before_the_boundary_are_marked_compacted(
    api: APIClient, messages: str, session: Session
) -> None:
    fill(session, 3)
    Session.objects.update(compact_boundary_seq=3)
    assert [row["compacted"] for row in api.get(messages).json()["results"]] == [True, True, False]

"""Traces as a collector gets them: requests, turns, calls, tools and compactions, by convention."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from chatcore.base.runner import turn_runner
from chatcore.base.tracing import Traces, get_traces
from chatcore.contrib.tracing import spans
from chatcore.models import Session
from tests.support.post_collector import PostCollector
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.trace_collector import Span, list_spans

pytestmark = pytest.mark.django_db(transaction=True)
CLIENT_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
HEADERS = {"traceparent": f"00-{CLIENT_TRACE}-00f067aa0ba902b7-01"}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[PostCollector]:
    settings.TRACES = "on"
    with PostCollector() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
        spans.start_traces(has_contents=False)
        yield server
        spans.stop_traces()


def collect(collector: PostCollector) -> dict[str, Span]:
    """Return the spans by name, after all of them have been sent."""
    turn_runner.drain()
    spans.stop_traces()
    return {span.name: span for span in list_spans(collector)}


def test_one_trace_leads_from_the_clients_request_to_the_providers_answer(
    collector: PostCollector,
    user: User,
    as_user: Callable[[User], APIClient],
    session: Session,
    scripted: ScriptedModel,
) -> None:
    call = make_tool_call("calculate", {"expression": "6 * 7"})
    scripted.script(Reply(tool_calls=(call,)), Reply(text="The heron says 42."))
    body = {"content": "What does the heron say?"}
    response = as_user(user).post(f"/api/v1/sessions/{session.pk}/messages", body, headers=HEADERS)
    assert response.status_code == 201
    found = collect(collector)

    request = found["POST /api/v1/sessions/<uuid:session_id>/messages"]
    turn, tool, chat = found["turn"], found["execute_tool calculate"], found["chat test-model"]
    assert {span.trace for span in found.values()} == {CLIENT_TRACE}
    assert {span.service for span in found.values()} == {"chatcore"}
    assert (turn.parent, tool.parent, chat.parent) == (request.id, turn.id, turn.id)
    assert request.values["http.response.status_code"] == 201
    assert turn.values["chatcore.turn.status"] == "completed"
    assert turn.values["gen_ai.conversation.id"] == str(session.pk)
    assert chat.kind == 3  # client
    assert chat.values["gen_ai.operation.name"] == "chat"
    assert chat.values["gen_ai.provider.name"] == "openai"
    assert chat.values["gen_ai.request.model"] == "test-model"
    assert chat.values["gen_ai.response.finish_reasons"] == ["stop"]
    assert chat.values["gen_ai.usage.input_tokens"] > 0
    assert chat.values["gen_ai.usage.output_tokens"] > 0
    assert chat.values["server.address"] == "127.0.0.1"
    assert tool.values["gen_ai.tool.name"] == "calculate"
    assert turn.start <= chat.start <= chat.end <= turn.end
    assert not any(span.failed for span in found.values())
    everything = b"".join(collector.bodies)
    assert b"heron" not in everything
    assert b"6 * 7" not in everything


def test_a_failure_says_its_type_and_no_words(
    collector: PostCollector, api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(status=401, body=b'{"error": {"message": "Bad key sk-heron"}}')
    api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"})
    found = collect(collector)
    for name in ("chat test-model", "turn"):
        assert found[name].failed
        assert found[name].values["error.type"] == "provider_auth"
    assert b"sk-heron" not in b"".join(collector.bodies)


def test_a_compaction_has_its_run_and_its_summary_calls(
    collector: PostCollector, api: APIClient, full: Session
) -> None:
    run = api.post(f"/api/v1/sessions/{full.pk}/compact", {"wait": True}).json()
    assert run["status"] == "applied"
    found = collect(collector)
    run_span, call = found["compaction run"], found["chat test-model"]
    assert run_span.values["chatcore.run.id"] == run["id"]
    assert run_span.values["chatcore.run.status"] == "applied"
    assert (
        run_span.values["chatcore.run.tokens_after"] < run_span.values["chatcore.run.tokens_before"]
    )
    assert call.parent == run_span.id


def test_contents_are_in_traces_only_where_an_operator_wants_them(
    collector: PostCollector, api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    spans.stop_traces()
    spans.start_traces(has_contents=True)
    scripted.script(Reply(text="The heron says 42."))
    api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "What says the heron?"})
    chat = collect(collector)["chat test-model"]
    assert "What says the heron?" in chat.values["gen_ai.input.messages"]
    assert "The heron says 42." in chat.values["gen_ai.output.messages"]


def test_without_traces_nothing_is_opened_and_no_statement_is_added(
    api: APIClient, session: Session
) -> None:
    traces = get_traces()
    assert type(traces) is Traces
    with CaptureQueriesContext(connection) as captured, traces.open_span("nothing", {}) as span:
        traces.note({"a": 1}, error_type="b")
    assert (span, len(captured)) == (None, 0)


def test_a_server_without_the_packages_of_traces_does_not_start_with_them(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TRACES = "on"
    exporter = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
    monkeypatch.setitem(sys.modules, exporter, None)
    monkeypatch.delitem(sys.modules, spans.__name__)
    with pytest.raises(ImproperlyConfigured, match=r"pip install 'chatcore\[traces\]'"):
        apps.get_app_config("tracing").ready()


def test_a_collector_that_is_away_costs_no_answer(
    monkeypatch: pytest.MonkeyPatch, api: APIClient, session: Session
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    spans.start_traces(has_contents=False)
    try:
        answer = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"})
        assert answer.status_code == 201
    finally:
        spans.stop_traces()

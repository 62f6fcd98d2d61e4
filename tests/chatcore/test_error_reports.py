"""Errors reach a server that speaks Sentry's protocol, with ids and without contents."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
from structlog.contextvars import bound_contextvars

from chatcore.serving.error_reports import start_error_reports
from tests.support.post_collector import PostCollector


@pytest.fixture
def collector() -> Iterator[PostCollector]:
    with PostCollector() as server:
        start_error_reports(f"http://key@127.0.0.1:{server.server_port}/1")
        yield server
        sentry_sdk.init()  # without an address it reports nothing any more


def read_events(collector: PostCollector) -> list[dict[str, Any]]:
    lines = [line for body in collector.bodies for line in body.splitlines()]
    parts = [json.loads(line) for line in lines if line.startswith(b"{")]
    return [part for part in parts if "logentry" in part]


def test_an_error_is_reported_with_ids_and_its_stack_but_no_contents(
    collector: PostCollector,
) -> None:
    def answer(question: str) -> None:
        raise ZeroDivisionError("in the middle")

    with bound_contextvars(request="r1", user="7", session=None):
        try:
            answer("Which heron is secret?")
        except ZeroDivisionError:
            logging.getLogger("tests").exception("no answer at %s", "/login/once/abc.def/")
    sentry_sdk.flush(timeout=30)
    (event,) = read_events(collector)
    assert event["tags"] == {"request": "r1", "user": "7"}
    frames = event["exception"]["values"][0]["stacktrace"]["frames"]
    assert frames[-1]["function"] == "answer"
    assert "vars" not in frames[-1]
    words = json.dumps({**event, "exception": None})
    assert "abc.def" not in words
    assert "request" not in event

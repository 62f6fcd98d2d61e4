"""Errors reach a server that speaks Sentry's protocol, with ids and without contents."""

import gzip
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import sentry_sdk
from structlog.contextvars import bound_contextvars

from chatcore.serving.error_reports import start_error_reports


class Collector(HTTPServer):
    """Takes reports, as Sentry does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[bytes] = []

    def read_events(self) -> list[dict[str, Any]]:
        lines = [line for body in self.bodies for line in body.splitlines()]
        parts = [json.loads(line) for line in lines if line.startswith(b"{")]
        return [part for part in parts if "logentry" in part]


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_packed = self.headers.get("Content-Encoding") == "gzip"
        self.server.bodies.append(gzip.decompress(body) if is_packed else body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        start_error_reports(f"http://key@127.0.0.1:{server.server_port}/1")
        yield server
        sentry_sdk.init()  # without an address it reports nothing any more
        server.shutdown()


def test_an_error_is_reported_with_ids_and_its_stack_but_no_contents(collector: Collector) -> None:
    def answer(question: str) -> None:
        raise ZeroDivisionError("in the middle")

    with bound_contextvars(request="r1", user="7", session=None):
        try:
            answer("Which heron is secret?")
        except ZeroDivisionError:
            logging.getLogger("tests").exception("no answer at %s", "/login/once/abc.def/")
    sentry_sdk.flush(timeout=30)
    (event,) = collector.read_events()
    assert event["tags"] == {"request": "r1", "user": "7"}
    frames = event["exception"]["values"][0]["stacktrace"]["frames"]
    assert frames[-1]["function"] == "answer"
    assert "vars" not in frames[-1]
    words = json.dumps({**event, "exception": None})
    assert "abc.def" not in words
    assert "request" not in event

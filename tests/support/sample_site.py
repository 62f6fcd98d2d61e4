"""A web server on loopback for fetch_url, and the pages that it has."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from chatcore.providers.base import ToolCall
from chatcore.tools import registry as tool_registry
from tests.support.local_server import LocalHandler, LocalServer

Answer = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """A web server on loopback.

    `pages` maps a path to its answer, and `seen` holds the headers of every request.
    """

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.seen: list[tuple[str, dict[str, str]]] = []
        site = self

        class Handler(LocalHandler):
            def do_GET(self) -> None:
                site.seen.append((self.path, dict(self.headers)))
                site.pages[self.path](self)

        self.server = LocalServer(Handler)
        self.port, self.url = self.server.server_port, self.server.url


def page(
    body: bytes | str,
    content_type: str = "text/html; charset=utf-8",
    status: int = 200,
    **headers: str,
) -> Answer:
    data = body.encode() if isinstance(body, str) else body

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Type", content_type)
        request.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(data)

    return answer


def redirect(to: str, status: int = 302) -> Answer:
    return page("", status=status, Location=to)


@pytest.fixture
def sites() -> Iterator[Callable[[], Site]]:
    def start() -> Site:
        site = Site()
        stack.enter_context(site.server)
        return site

    with ExitStack() as stack:
        yield start


@pytest.fixture
def allow(settings: Any) -> Callable[..., None]:
    def allowed(*hosts: str) -> None:
        settings.CHATCORE = {**settings.CHATCORE, "FETCH_ALLOW_HOSTS": list(hosts)}

    return allowed


@pytest.fixture
def site(sites: Callable[[], Site], allow: Callable[..., None]) -> Site:
    """A site that the operator allows."""
    site = sites()
    allow(f"127.0.0.1:{site.port}")
    return site


def fetch(url: str) -> tool_registry.ToolOutcome:
    return tool_registry.run_tool(
        ToolCall(id="1", name="fetch_url", arguments=json.dumps({"url": url})),
        session_id=uuid.uuid4(),
    )

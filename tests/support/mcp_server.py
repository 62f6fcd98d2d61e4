"""A real MCP server on loopback, of the official SDK, with a few tools."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from django.conf import settings
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from tests.support.waiting import wait_until


@dataclass
class ToolServer:
    """A running server. `calls` are the calls that arrived, `headers` those of the requests.

    `silent_calls` counts the calls of the tool `wait`, which answers when `gate` is opened.
    """

    url: str = ""
    host: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    silent_calls: int = 0
    gate: threading.Event = field(default_factory=threading.Event)


@contextmanager
def run_tool_server() -> Iterator[ToolServer]:
    """Run the server until the block ends."""
    state = ToolServer()
    application = _note_headers(_build_server(state).streamable_http_app(), state)
    config = uvicorn.Config(
        application, host="127.0.0.1", port=0, log_level="error", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive(), what="the tool server")
    assert server.started, "it could not start"
    state.host = f"127.0.0.1:{socket.getsockname()[1]}"
    state.url = f"http://{state.host}/mcp"
    try:
        yield state
    finally:
        server.should_exit = True
        thread.join(timeout=15)
        socket.close()


@pytest.fixture(scope="module")
def running() -> Iterator[ToolServer]:
    with run_tool_server() as server:
        yield server


@pytest.fixture
def tool_server(running: ToolServer, monkeypatch: pytest.MonkeyPatch) -> ToolServer:
    """The server, which the operator allows although it is on loopback."""
    monkeypatch.setitem(settings.CHATCORE, "FETCH_ALLOW_HOSTS", [running.host])
    running.calls.clear()
    running.headers.clear()
    running.gate.clear()
    running.silent_calls = 0
    return running


def _build_server(state: ToolServer) -> MCPServer:
    server = MCPServer("files")

    @server.tool()
    def read(path: str) -> str:
        """Read a file."""
        state.calls.append(("read", path))
        return f"The text of {path}."

    @server.tool()
    async def wait(number: int) -> str:
        """Answer when somebody opens the gate."""
        state.silent_calls += 1
        await asyncio.to_thread(state.gate.wait)
        return f"Number {number} has waited."

    @server.tool()
    def dump(size: int) -> str:
        """Return many words."""
        state.calls.append(("dump", size))
        return "x" * size

    @server.tool()
    def fail(reason: str) -> str:
        """Fail."""
        state.calls.append(("fail", reason))
        raise ToolError(reason)

    return server


def _note_headers(application: Any, state: ToolServer) -> Any:
    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            state.headers.append(
                {name.decode(): value.decode() for name, value in scope["headers"]}
            )
        await application(scope, receive, send)

    return serve

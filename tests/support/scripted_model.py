"""A provider on loopback that answers with scripted replies, in the formats of both protocols."""

import contextlib
import json
import select
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from chatcore.providers.base import ToolCall
from tests.support.local_server import LocalHandler, LocalServer
from tests.support.scripted_wire import (
    Event,
    Reply,
    build_anthropic_events,
    build_anthropic_message,
    build_openai_completion,
    build_openai_events,
    count_usage,
)

Answer = Reply | Callable[[dict[str, Any]], Reply]


def make_tool_call(
    name: str, arguments: dict[str, Any] | str = "{}", *, id: str = "call_1"
) -> ToolCall:
    """Return a tool call for a reply. Arguments that are text are sent unchanged."""
    return ToolCall(
        id=id,
        name=name,
        arguments=arguments
        if isinstance(arguments, str)
        else json.dumps(arguments, ensure_ascii=False),
    )


def make_overflow(tokens: int = 9000, window: int = 8192) -> Reply:
    """Return the error of llama.cpp for a request that is too long."""
    detail = f"the request exceeds the available context size ({window} tokens), try increasing it"
    error = {
        "code": 400,
        "message": detail,
        "type": "exceed_context_size_error",
        "n_prompt_tokens": tokens,
        "n_ctx": window,
    }
    return Reply(status=400, body=json.dumps({"error": error}).encode())


@dataclass(frozen=True)
class Received:
    """One received request. `json` is {} for a GET.

    `client_left` is set when the client disconnected before the end. `client_port` is the client's
    end of the connection: the same for two requests if it was used again.
    """

    path: str
    headers: dict[str, str]  # names in lower case
    json: dict[str, Any]
    client_left: threading.Event = field(default_factory=threading.Event)
    client_port: int = 0
    body: bytes = b""  # as it came


class ScriptedModel:
    """A running provider: `with ScriptedModel() as scripted`.

    It uses the scripted replies in order, then always `default`.
    """

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.default: Answer = Reply(text="Hello from the scripted model.")
        self.models = ["test-model"]
        self.window = 8192  # reported by /v1/models, as llama.cpp does
        self.stopping = threading.Event()
        self._replies: deque[Answer] = deque()
        self._lock = threading.Lock()
        self._server = _Server()
        self._server.scripted = self

    @property
    def anthropic_base_url(self) -> str:
        return self._server.url

    @property
    def base_url(self) -> str:
        return f"{self.anthropic_base_url}/v1"

    def script(self, *replies: Answer) -> None:
        """Queue replies, to be used in this order."""
        with self._lock:
            self._replies.extend(replies)

    def take_reply(self, request: Received) -> Reply:
        """Record the request and return its reply."""
        with self._lock:
            self.requests.append(request)
            reply = self._replies.popleft() if self._replies else self.default
        return reply(request.json) if callable(reply) else reply

    def record_request(self, request: Received) -> None:
        with self._lock:
            self.requests.append(request)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.stop()
        self._server.close_connections()


class _Server(LocalServer):
    scripted: ScriptedModel

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Close what clients keep for their next request.

        The next test's server may get the same port.
        """
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a client of a test may disconnect at any time."""


class _Handler(LocalHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self.server.scripted.record_request(self._read_request({}))
        models = [
            _describe_model(name, self.server.scripted.window)
            for name in self.server.scripted.models
        ]
        self._send_body(
            json.dumps({"object": "list", "data": models, "has_more": False}).encode(), Reply()
        )

    def do_POST(self) -> None:
        raw_body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.loads(raw_body or b"{}")
        request = self._read_request(body, raw_body)
        if self.path.endswith("/count_tokens"):
            return self._send_body(
                json.dumps({"input_tokens": count_usage(Reply(), body)[0]}).encode(), Reply()
            )
        reply = self.server.scripted.take_reply(request)
        try:
            self._answer(reply, request)
        except OSError:
            request.client_left.set()
            self.close_connection = True

    def _answer(self, reply: Reply, request: Received) -> None:
        self._pause(reply.delay, request)
        if reply.hang and reply.cut_after is None:
            self._hang(request)
        elif reply.body is not None or reply.status >= 400:
            self._send_body(
                reply.body if reply.body is not None else self._build_error(reply), reply
            )
        elif request.json.get("stream"):
            self._send_stream(reply, request)
        else:
            build_body = build_anthropic_message if self._anthropic else build_openai_completion
            self._send_body(
                json.dumps(build_body(reply, request.json)).encode(),
                reply,
                cut=reply.cut_after is not None,
            )

    @property
    def _anthropic(self) -> bool:
        return self.path.startswith("/v1/messages")

    def _read_request(self, body: dict[str, Any], raw_body: bytes = b"") -> Received:
        return Received(
            self.path,
            {name.lower(): value for name, value in self.headers.items()},
            body,
            client_port=self.client_address[1],
            body=raw_body,
        )

    def _build_error(self, reply: Reply) -> bytes:
        message = reply.text or "scripted error"
        if self._anthropic:
            return json.dumps(
                {
                    "type": "error",
                    "error": {"type": _name_anthropic_error(reply.status), "message": message},
                }
            ).encode()
        return json.dumps(
            {
                "error": {
                    "message": message,
                    "type": "invalid_request_error",
                    "param": None,
                    "code": None,
                }
            }
        ).encode()

    def _send_body(self, body: bytes, reply: Reply, *, cut: bool = False) -> None:
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        } | reply.headers
        self._send_head(reply.status, headers)
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut

    def _send_stream(self, reply: Reply, request: Received) -> None:
        events = (build_anthropic_events if self._anthropic else build_openai_events)(
            reply, request.json
        )
        self._send_head(
            reply.status,
            {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"} | reply.headers,
        )
        if self._send_events(events, reply, request):
            self.wfile.write(b"0\r\n\r\n")
        elif reply.hang:
            self._hang(request)
        else:
            self.close_connection = True

    def _send_events(self, events: Iterator[Event], reply: Reply, request: Received) -> bool:
        """Send the events, and return False if `cut_after` stopped it."""
        chunk_count = 0
        for event in events:
            if chunk_count == reply.cut_after:
                return False
            if event.content:
                self._pause(reply.chunk_delay if chunk_count else 0, request)
                chunk_count += 1
            for data in _split_bytes(event.encode(), reply.bytes_per_write):
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        return True

    def _send_head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _hang(self, request: Received) -> None:
        self._pause(3600, request)
        self.close_connection = True

    def _pause(self, seconds: float, request: Received) -> None:
        """Wait, unless the client disconnects or the server stops."""
        elapsed = 0.0
        while elapsed < seconds and not self.server.scripted.stopping.is_set():
            step = min(0.05, seconds - elapsed)
            readable, _, _ = select.select([self.connection], [], [], step)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise ConnectionResetError("The client left.")
            elapsed += step


def _split_bytes(data: bytes, size: int | None) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)] if size else [data]


def _describe_model(name: str, window: int) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "type": "model",
        "created": 1,
        "owned_by": "scripted",
        "meta": {"n_ctx": window},
    }


def _name_anthropic_error(status: int) -> str:
    names = {
        401: "authentication_error",
        403: "permission_error",
        413: "request_too_large",
        429: "rate_limit_error",
        529: "overloaded_error",
    }
    return names.get(status, "api_error" if status >= 500 else "invalid_request_error")

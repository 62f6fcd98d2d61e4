"""A provider that sends tokens at a fixed pace, in OpenAI's wire format, from raw sockets.

`python -m measure.benchmarks.load.paced_provider TOKENS_A_SECOND` prints its port and serves until
its standard input is closed. The last "Count to N" of a request says how many tokens to send.
"""

import asyncio
import json
import re
import sys
from typing import cast

import httptools
import uvloop

from measure.benchmarks.load.stamps import TOKEN_LENGTH, build_token

COUNT = re.compile(rb"Count to (\d+)")
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Cache-Control: no-cache\r\n\r\n"
)
FRAME = (
    '{"id":"chatcmpl-paced","object":"chat.completion.chunk","created":1,"model":"test-model",'
    '"choices":%s}'
)
TOKEN_START, TOKEN_END = (
    (FRAME % '[{"index":0,"delta":{"content":"|"},"finish_reason":null}]').encode().split(b"|")
)


def format_chunk(data: bytes) -> bytes:
    """Return one server-sent event as one chunk of an HTTP body."""
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(event), event)


ROLE = format_chunk(
    (
        FRAME % '[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]'
    ).encode()
)
FINISH = format_chunk((FRAME % '[{"index":0,"delta":{},"finish_reason":"stop"}]').encode())
DONE = format_chunk(b"[DONE]") + b"0\r\n\r\n"
# All tokens have the same length, so the head and the tail of a chunk are the same for each.
CHUNK_START, CHUNK_END = format_chunk(TOKEN_START + b"|" * TOKEN_LENGTH + TOKEN_END).split(
    b"|" * TOKEN_LENGTH
)


class PacedAnswer(asyncio.Protocol):
    """One connection of a client; its requests are answered one after the other."""

    pace: float  # tokens a second

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""
        self._timer: asyncio.TimerHandle | None = None
        self._start = 0.0
        self._sent_count = 0
        self._token_count = 0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the answer of a client that has left."""
        if self._timer:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse a part of a request."""
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """Collect the body of the request."""
        self._body += body

    def on_message_complete(self) -> None:
        """Begin the answer, or send a whole one to a client that wants no stream."""
        body, self._body = self._body, b""
        counts = COUNT.findall(body)
        self._token_count = int(counts[-1]) if counts else 1
        if b'"stream":true' not in body.replace(b" ", b""):
            self._send_whole_answer()
            return
        self._transport.write(HEAD + ROLE)
        self._sent_count = 0
        self._start = self._loop.time()
        self._send_due_tokens()

    def _send_due_tokens(self) -> None:
        due_count = int((self._loop.time() - self._start) * self.pace) + 1
        due_count = min(due_count, self._token_count)
        while self._sent_count < due_count:
            self._transport.write(CHUNK_START + build_token() + CHUNK_END)
            self._sent_count += 1
        if self._sent_count < self._token_count:
            next_time = self._start + self._sent_count / self.pace
            self._timer = self._loop.call_at(next_time, self._send_due_tokens)
            return
        usage = {"prompt_tokens": 9, "completion_tokens": self._token_count}
        usage["total_tokens"] = sum(usage.values())
        frame = FRAME % ('[],"usage":' + json.dumps(usage))
        self._transport.write(FINISH + format_chunk(frame.encode()) + DONE)

    def _send_whole_answer(self) -> None:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": "One."},
            "finish_reason": "stop",
        }
        answer = {
            "id": "chatcmpl-paced",
            "object": "chat.completion",
            "created": 1,
            "model": "test-model",
            "choices": [choice],
        }
        body = json.dumps(answer).encode()
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )


async def serve() -> None:
    """Serve until standard input is closed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(PacedAnswer, "127.0.0.1", 0, backlog=2_048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    PacedAnswer.pace = float(sys.argv[1])
    uvloop.run(serve())

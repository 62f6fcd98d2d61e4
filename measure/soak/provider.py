"""A provider of its own process that answers as the question says: python -m measure.soak.provider.

It prints its port. The last message decides: `fail` is refused, `reset` breaks off, `hang` never
says a word, `long` goes on for a minute, `tool` calls a tool, a transcript is summarized, and
anything else gets a short answer. `GET /open` counts the calls that are still open, `POST /mcp` is
a server of one tool, and any other POST is the address of a webhook.
"""

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

SHORT = [f"word{number} " for number in range(12)]
LONG = [f"word{number} " for number in range(300)]
LONG_PAUSE = 0.2
EVENT_STREAM = "text/event-stream"
SUMMARY = """## Active Tasks
- [IN PROGRESS] The soak goes on.
## Key Decisions
- Use the short answer.
## Important Context
- Words are counted.
## Tool Results
- None.
## Conversation Flow
The user asked, and the assistant answered.
"""

open_calls = 0
call_numbers = itertools.count()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve the requests of one connection."""
    try:
        while request := await read_request(reader):
            if not await answer_request(*request, reader, writer):
                break
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def read_request(reader: asyncio.StreamReader) -> tuple[str, str, bytes] | None:
    """Return method, path and body of the next request."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    method, path, _ = lines[0].split(" ", 2)
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    return method, path, await reader.readexactly(int(headers.get("content-length", 0)))


async def answer_request(
    method: str,
    path: str,
    body: bytes,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> bool:
    """Answer one request; return False if the connection ends with it."""
    global open_calls
    if method == "GET":
        value = {"open": open_calls} if path == "/open" else {"object": "list", "data": MODELS}
        return await send_json(writer, value)
    if path == "/mcp":
        return await send_json(writer, answer_tool_server(json.loads(body)))
    if path.endswith("/embeddings"):
        vector = {"object": "embedding", "index": 0, "embedding": [0.1, 0.2]}
        return await send_json(writer, {"object": "list", "data": [vector], "usage": USAGE})
    if path.startswith("/hooks/"):
        return await send_json(writer, {}, status=404 if "missing" in path else 200)
    open_calls += 1
    leaving = asyncio.ensure_future(reader.read(1))  # nothing comes before the answer is over
    answering = asyncio.ensure_future(answer_call(json.loads(body), writer))
    try:
        await asyncio.wait({leaving, answering}, return_when=asyncio.FIRST_COMPLETED)
        return answering.done() and answering.result()
    finally:
        open_calls -= 1
        for task in (leaving, answering):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await leaving


async def answer_call(request: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
    """Answer a call of a model."""
    messages = request.get("messages", [])
    text = str(messages[-1].get("content") if messages else request.get("prompt", ""))
    if "<transcript>" in str(messages):
        return await send_answer(writer, request, [SUMMARY])
    if "fail" in text:
        return await send_json(writer, {"error": {"message": "not today"}}, status=500)
    if "hang" in text:
        await asyncio.Event().wait()
    if "reset" in text:
        return False
    if "tool" in text and request.get("tools") and messages[-1]["role"] == "user":
        return await send_answer(writer, request, [], tool=request["tools"][-1])
    is_long = "long" in text
    words = LONG if is_long else SHORT
    return await send_answer(writer, request, words, pause=LONG_PAUSE if is_long else 0)


async def send_answer(
    writer: asyncio.StreamWriter,
    request: dict[str, Any],
    words: list[str],
    *,
    pause: float = 0,
    tool: dict[str, Any] | None = None,
) -> bool:
    """Send an answer, as a whole or in pieces, in the form of chat completions."""
    calls = [build_call(tool)] if tool else []
    reason = "tool_calls" if tool else "stop"
    if not request.get("stream"):
        await asyncio.sleep(pause * len(words))
        message = {"role": "assistant", "content": "".join(words)}
        choice = {"index": 0, "finish_reason": reason, "text": "".join(words)}
        choice["message"] = message | ({"tool_calls": calls} if calls else {})
        return await send_json(writer, build_completion("chat.completion", [choice], USAGE))
    write_head(writer, 200, EVENT_STREAM, "Transfer-Encoding: chunked")
    async for piece in iterate_pieces(words, calls, pause):
        end = "" if piece else reason
        choice = {"index": 0, "delta": piece, "finish_reason": end or None}
        choice |= {"text": piece.get("content", "")}
        value = build_completion("chat.completion.chunk", [choice], USAGE if end else None)
        write_chunk(writer, f"data: {json.dumps(value)}\n\n")
        await writer.drain()
    write_chunk(writer, "data: [DONE]\n\n")
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


async def iterate_pieces(
    words: list[str], calls: list[dict[str, Any]], pause: float
) -> AsyncIterator[dict[str, Any]]:
    """Yield the deltas of an answer; the last one is empty."""
    if calls:
        yield {"role": "assistant", "tool_calls": [call | {"index": 0} for call in calls]}
    for word in words:
        await asyncio.sleep(pause)
        yield {"content": word}
    yield {}


def build_call(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a call of a tool."""
    function = {"name": tool["function"]["name"], "arguments": "{}"}
    return {"id": f"call_{next(call_numbers)}", "type": "function", "function": function}


def build_completion(
    kind: str, choices: list[dict[str, Any]], usage: dict[str, int] | None
) -> dict[str, Any]:
    """Return a body, or a part of a stream, of chat completions."""
    return {
        "id": "chatcmpl-soak",
        "object": kind,
        "created": 1,
        "model": "soak",
        "choices": choices,
        "usage": usage,
    }


def answer_tool_server(message: dict[str, Any]) -> dict[str, Any]:
    """Answer a message of MCP as a server of one tool."""
    results = {
        "initialize": {
            "protocolVersion": message.get("params", {}).get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "soak", "version": "1"},
        },
        "tools/list": {
            "tools": [{"name": "count", "description": "", "inputSchema": {"type": "object"}}]
        },
        "tools/call": {"content": [{"type": "text", "text": "three"}]},
    }
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": results.get(message["method"], {})}


async def send_json(writer: asyncio.StreamWriter, value: object, status: int = 200) -> bool:
    """Send a whole body."""
    body = json.dumps(value).encode()
    write_head(writer, status, "application/json", f"Content-Length: {len(body)}")
    writer.write(body)
    await writer.drain()
    return True


def write_head(writer: asyncio.StreamWriter, status: int, media_type: str, line: str) -> None:
    writer.write(f"HTTP/1.1 {status} -\r\nContent-Type: {media_type}\r\n{line}\r\n\r\n".encode())


def write_chunk(writer: asyncio.StreamWriter, text: str) -> None:
    data = text.encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


MODELS = [{"id": "soak", "object": "model", "created": 1, "owned_by": "soak"}]
USAGE = {"prompt_tokens": 50, "completion_tokens": 12, "total_tokens": 62}


async def main() -> None:
    """Serve until the process is ended."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

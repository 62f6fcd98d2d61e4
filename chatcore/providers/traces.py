"""Spans of the calls of providers and of tools, by the conventions for generative AI."""

import json
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any
from urllib.parse import urlsplit

from chatcore.base.traces import spans
from chatcore.providers.base import Connection, Request, StreamEnd, StreamPart, TextDelta, ToolCall

# The parameters of a request that the conventions have a name for.
PARAM_NAMES = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
}


async def trace_call(
    connection: Connection, request: Request, parts: AsyncGenerator[StreamPart]
) -> AsyncGenerator[StreamPart]:
    """Yield the parts of a call, and describe the call in a span that ends with it."""
    # Not the current span: what runs between two parts belongs to the reader.
    span = spans.begin_span(
        f"chat {request.model}", _describe_request(connection, request), kind="client"
    )
    begin = time.monotonic()
    texts: list[str] = []
    has_begun = False
    try:
        async with aclosing(parts):
            async for part in parts:
                if not has_begun:
                    has_begun = True
                    seconds = time.monotonic() - begin
                    span.set_attribute("gen_ai.response.time_to_first_chunk", seconds)
                if isinstance(part, StreamEnd):
                    span.set_attributes(_describe_end(part, texts))
                elif spans.have_contents() and isinstance(part, TextDelta):
                    texts.append(part.text)
                yield part
    except GeneratorExit:
        spans.note_error(span, "cancelled")
        raise
    except BaseException as error:
        spans.note_error(span, getattr(error, "type", type(error).__name__))
        raise
    finally:
        span.end()


@contextmanager
def trace_tool(call: ToolCall) -> Iterator[Any]:
    """Open a span around a call of a tool."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.arguments": call.arguments if spans.have_contents() else None,
    }
    with spans.open_span(f"execute_tool {call.name}", attributes) as span:
        yield span


def _describe_request(connection: Connection, request: Request) -> dict[str, Any]:
    address = urlsplit(connection.base_url)
    attributes: dict[str, object] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": connection.protocol,
        "gen_ai.request.model": request.model,
        "gen_ai.request.max_tokens": request.max_tokens,
        "gen_ai.request.stream": True,
        "server.address": address.hostname,
        "server.port": address.port,
    }
    for name, title in PARAM_NAMES.items():
        value = request.params.get(name)
        attributes[f"gen_ai.request.{title}"] = value if isinstance(value, int | float) else None
    if spans.have_contents():
        messages = [_format_message(item.role, item.content) for item in request.messages]
        texts = filter(None, (request.system, request.preface))
        attributes["gen_ai.system_instructions"] = json.dumps(
            [{"type": "text", "content": text} for text in texts]
        )
        attributes["gen_ai.input.messages"] = json.dumps(messages)
    return attributes


def _describe_end(end: StreamEnd, texts: list[str]) -> dict[str, Any]:
    attributes: dict[str, object] = {"gen_ai.response.finish_reasons": [end.reason]}
    if end.usage:
        usage = {
            "input_tokens": end.usage.input,
            "output_tokens": end.usage.output,
            "cache_read.input_tokens": end.usage.cache_read,
            "cache_creation.input_tokens": end.usage.cache_write,
        }
        attributes |= {
            f"gen_ai.usage.{name}": count for name, count in usage.items() if count is not None
        }
    if spans.have_contents():
        message = _format_message("assistant", "".join(texts))
        attributes["gen_ai.output.messages"] = json.dumps([message])
    return attributes


def _format_message(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}
